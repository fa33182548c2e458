// Variables as LLVM describes them: other forms, other frames, code that shares a page of the file with what is read only.
struct Pair {
    a: i32,
    b: f64,
}

static COUNTER: u64 = 17;

#[inline(never)]
#[no_mangle]
pub extern "C" fn place(n: i32, x: f64, small: u8, pair: &Pair, flag: bool) -> f64 {
    let sum = f64::from(n) + x;
    println!("place {n} {x} {small} {} {} {} {COUNTER}", pair.a, pair.b, u8::from(flag));
    inside(n * 2, sum);
    sum + pair.b
}

#[inline(never)]
#[no_mangle]
pub fn inside(twice: i32, sum: f64) {
    println!("inside {twice} {sum}");
}

fn main() {
    place(-3, 2.5, 200, &Pair { a: 7, b: 0.5 }, true);
}
