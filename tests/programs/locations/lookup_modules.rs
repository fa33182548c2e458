// Names of Rust: functions in modules, methods, those of traits, and of several types.
mod net {
    pub struct Conn(pub i32);

    impl Conn {
        #[inline(never)]
        pub fn serve(&self, n: i32) -> i32 {
            self.0 + n
        }
    }

    impl std::fmt::Display for Conn {
        #[inline(never)]
        fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
            write!(formatter, "{}", self.0)
        }
    }

    #[inline(never)]
    pub fn shown<T: std::fmt::Debug>(value: T) -> String {
        format!("{:?}", value)
    }
}

fn main() {
    let conn = net::Conn(std::env::args().count() as i32);
    println!("{} {} {} {}", conn.serve(3), net::shown(4u8), net::shown("x"), conn);
}
