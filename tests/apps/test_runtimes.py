"""Language runtimes with compilers, collectors and threads of their own, recorded: the same output, every time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.apps.repeated import expect_same
from tests.e2e import runs

pytestmark = [pytest.mark.stress, pytest.mark.timeout(1800)]

NODE = """
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
function mix(n, f) { let x = 1; for (let i = 0; i < n; i++) x = f(x, i) & 0xffffff; return x; }
const shapes = [(x, i) => x * 31 + i, (x, i) => x ^ (i << 3), (x, i) => (x >> 1) + (i % 7 ? i : x)];
class P { constructor(x) { this.x = x; } get() { return this.x; } }
class Q extends P { get() { return super.get() * 2; } }
function work(seed) {
  let total = 0;
  for (let round = 0; round < 30; round++) total = (total + mix(3000 + seed, shapes[round % 3])) & 0xffffff;
  for (let i = 0; i < 20000; i++) total = (total + (i % 3 ? new P(i) : new Q(i)).get()) & 0xffffff;
  // Optimised for numbers by now: a string makes it fall back.
  total += mix(3, (x, i) => (i === 2 ? String(x).length : x + i));
  return total + new Function('a', 'return a * 3 + 1')(seed) + JSON.stringify([...'aXbXc'.matchAll(/[a-c]/g)]).length;
}
if (isMainThread) {
  const results = [];
  let left = 3;
  for (let i = 0; i < 3; i++)
    new Worker(__filename, { workerData: i })
      .on('message', (m) => { results[i] = m; })
      .on('exit', () => { if (--left === 0) console.log(results.join(' '), work(9)); });
} else parentPort.postMessage(work(workerData));
"""

JAVA = """
import java.util.*;
public class Program {
    interface Shape { int area(int k); }
    static class A implements Shape { public int area(int k) { return k * 3; } }
    static class B implements Shape { public int area(int k) { return k ^ 5; } }
    static class C implements Shape { public int area(int k) { return k - 7; } }
    static int sum(Shape s, int n) { int t = 0; for (int i = 0; i < n; i++) t += s.area(i) & 1023; return t; }
    public static void main(String[] a) throws Exception {
        long total = 0;
        // Compiled for one receiver, then for two, then for any: each time the code is thrown away.
        for (int i = 0; i < 60; i++) total += sum(new A(), 2000);
        for (int i = 0; i < 60; i++) total += sum(i % 2 == 0 ? new A() : new B(), 2000);
        for (int i = 0; i < 60; i++) total += sum(i % 3 == 0 ? new A() : i % 3 == 1 ? new B() : new C(), 2000);
        int caught = 0;
        for (int i = 0; i < 30000; i++) {
            String s = i % 100 == 0 ? null : "x" + i;
            try { total += s.length(); } catch (NullPointerException e) { caught++; }
        }
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 4000; i++) { byte[] b = new byte[10000]; b[i % 100] = 1; if (i % 50 == 0) kept.add(b); }
        System.gc();
        long[] parts = new long[4];
        Thread[] threads = new Thread[4];
        for (int i = 0; i < 4; i++) {
            int n = i;
            threads[i] = new Thread(() -> {
                for (int k = 0; k < 20000; k++) parts[n] += Integer.toString(k * n).hashCode() & 7;
            });
            threads[i].start();
        }
        for (Thread t : threads) t.join();
        System.out.println(total + " " + caught + " " + kept.size() + " " + Arrays.toString(parts));
    }
}
"""

GO = """
package main

import (
	"fmt"
	"sync"
)

func walk(n int) int {
	var block [128]int
	block[n%128] = n
	if n == 0 {
		return block[0]
	}
	return walk(n-1) + block[n%128]
}

func main() {
	var group sync.WaitGroup
	results := make([]int, 16)
	ticks := make(chan int, 4)
	for i := range results {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for k := 0; k < 20; k++ {
				results[i] += walk(200 + i)
			}
			s := 0
			for k := 0; k < 2000000; k++ { // no call in it: it is preempted by a signal
				s += k & i
			}
			ticks <- s
		}(i)
	}
	total := 0
	for range results {
		total += <-ticks
	}
	group.Wait()
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var m map[string]int
		m["x"] = 1
	}()
	fmt.Println(results, total)
}
"""

RUST = """
use std::collections::BTreeMap;
use std::sync::{mpsc, Arc, Mutex};
fn main() {
    let shared = Arc::new(Mutex::new(BTreeMap::new()));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..4u64)
        .map(|n| {
            let (shared, sender) = (shared.clone(), sender.clone());
            std::thread::spawn(move || {
                for k in 0..500 {
                    *shared.lock().unwrap().entry((k * n) % 37).or_insert(0u64) += k;
                }
                let caught = std::panic::catch_unwind(|| if n % 2 == 0 { panic!("thread {n}") });
                sender.send((n, caught.is_err())).unwrap();
            })
        })
        .collect();
    for thread in threads { thread.join().unwrap(); }
    drop(sender);
    let mut ended: Vec<_> = receiver.iter().collect();
    ended.sort();
    println!("{:?} {}", ended, shared.lock().unwrap().values().sum::<u64>());
}
"""


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no program {name} on this machine")
    return found


def test_node_compiles_and_works_in_threads(tmp_path: Path) -> None:
    script = tmp_path / "program.js"
    script.write_text(NODE)
    expect_same([tool("node"), script], tmp_path)


def test_java_deoptimises_and_collects(tmp_path: Path) -> None:
    tool("javac")
    source = tmp_path / "Program.java"
    source.write_text(JAVA)
    assert runs.run(["javac", "-d", tmp_path, source]).status == 0
    expect_same([tool("java"), "-Xmx256m", "-cp", tmp_path, "Program"], tmp_path)


def test_go_preempts_its_goroutines(tmp_path: Path) -> None:
    source = tmp_path / "program.go"
    source.write_text(GO)
    environ = runs.environment() | {"GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod", "HOME": str(tmp_path)}
    built = runs.run([tool("go"), "build", "-o", tmp_path / "program", source], environ=environ, timeout_seconds=300)
    assert built.status == 0, built
    expect_same([tmp_path / "program"], tmp_path)


def test_rust_unwinds(tmp_path: Path) -> None:
    source = tmp_path / "program.rs"
    source.write_text(RUST)
    built = runs.run([tool("rustc"), "-O", "-o", tmp_path / "program", source], timeout_seconds=300)
    assert built.status == 0, built
    expect_same(
        [tmp_path / "program"], tmp_path, hide=r"thread '<unnamed>' \(?\d*\)? ?panicked.*\n.*\n|note: run with.*\n"
    )


def test_musl_static(tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <sys/wait.h>\n"
        "int main(void) { char *p[100]; long s = 0; for (int i = 0; i < 100; i++) { p[i] = malloc(i * 100 + 1);"
        ' s += (long)sprintf(p[i], "%d %g", i, i / 3.0); } fflush(stdout);'
        " if (fork() == 0) _exit(5); int w; wait(&w);"
        ' printf("%ld %d %d\\n", s, WEXITSTATUS(w), system("exit 4") >> 8); return 7; }\n'
    )
    assert runs.run([tool("musl-gcc"), "-static", "-O2", "-o", tmp_path / "program", source]).status == 0
    expect_same([tmp_path / "program"], tmp_path)
