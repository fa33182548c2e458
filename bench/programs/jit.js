// Objects, calls, typed arrays, maps and array methods, as often as the first argument says.
function Vector(x, y, z) { this.x = x; this.y = y; this.z = z; }
Vector.prototype.dot = function (o) { return this.x * o.x + this.y * o.y + this.z * o.z; };
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function sieve(n) {
  const composite = new Uint8Array(n);
  let count = 0;
  for (let i = 2; i < n; i++) {
    if (composite[i]) continue;
    count++;
    for (let j = i * 2; j < n; j += i) composite[j] = 1;
  }
  return count;
}
let total = 0;
for (let turn = 0; turn < Number(process.argv[2]); turn++) {
  for (let i = 0; i < 200000; i++) total += new Vector(i, i + 1, i + 2).dot(new Vector(1, 2, 3));
  const last = new Map();
  for (let i = 0; i < 50000; i++) last.set('k' + (i % 1000), i);
  total += fib(24) + sieve(300000) + last.size;
  total += [...Array(1000).keys()].map((x) => x * x).filter((x) => x % 3).reduce((a, b) => a + b);
}
console.log(total);
