// what: a Go program: goroutines on growing stacks, preempted loops, channels, garbage collection, panics, faults as panics, a child
// build: -trimpath
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type node struct {
	left, right *node
	value       [8]int
}

//go:noinline
func grow(n int) int {
	var frame [64]int
	frame[n%64] = n
	if n == 0 {
		return 0
	}
	return grow(n-1) + frame[n%64] - n + 1
}

func tree(depth int) *node {
	if depth == 0 {
		return nil
	}
	return &node{tree(depth - 1), tree(depth - 1), [8]int{depth}}
}

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.left.sum() + n.right.sum() + n.value[0]
}

func attempt(f func()) (text string) {
	defer func() {
		if cause := recover(); cause != nil {
			var err runtime.Error
			if e, ok := cause.(error); ok && errors.As(e, &err) {
				text = "runtime error: " + strings.SplitN(err.Error(), ": ", 2)[1]
				return
			}
			text = fmt.Sprint(cause)
		}
	}()
	f()
	return "no panic"
}

func main() {
	if len(os.Args) > 1 {
		fmt.Println("child", os.Args[1])
		os.Exit(7)
	}
	runtime.GOMAXPROCS(2)
	var group sync.WaitGroup
	results := make([]int, 20)
	for i := range results {
		group.Add(1)
		go func() {
			defer group.Done()
			results[i] = grow(i * 100)
		}()
	}
	group.Wait()
	fmt.Println(results)

	// Loops without a call are preempted by signals.
	var stop atomic.Bool
	var spun atomic.Int64
	for range 3 {
		group.Add(1)
		go func() {
			defer group.Done()
			n := 1
			for !stop.Load() {
				n = n*3 + 1
			}
			spun.Add(int64(n&1) + 1)
		}()
	}
	for range 3 {
		runtime.GC()
		runtime.Gosched()
	}
	time.Sleep(time.Millisecond)
	stop.Store(true)
	group.Wait()
	fmt.Println("stopped", spun.Load() > 0)

	numbers, squares := make(chan int), make(chan int, 4)
	for range 3 {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range numbers {
				squares <- n * n
			}
		}()
	}
	go func() {
		for i := range 100 {
			numbers <- i
		}
		close(numbers)
		group.Wait()
		close(squares)
	}()
	var all []int
	for n := range squares {
		all = append(all, n)
	}
	sort.Ints(all)
	fmt.Println(len(all), all[99])
	fmt.Println(tree(12).sum(), tree(10).sum())

	var nothing *node
	zero := len(os.Args) - 1
	fmt.Println(attempt(func() { fmt.Println(nothing.value[1]) }))
	fmt.Println(attempt(func() { fmt.Println(1 / zero) }))
	fmt.Println(attempt(func() { fmt.Println(all[1000+zero]) }))
	fmt.Println(attempt(func() { panic("own") }))

	select {
	case <-time.After(2 * time.Millisecond):
		fmt.Println("timer")
	case <-make(chan int):
	}
	child := exec.Command(os.Args[0], "argument")
	out, err := child.Output()
	fmt.Printf("%q %v\n", out, err)
}
