// Serves requests of its own in goroutines whose stacks grow, and panics and recovers, for each line; says what came of the answers.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
)

//go:noinline
func deeper(n int, text string) int {
	var room [512]byte
	copy(room[:], text)
	if n == 0 {
		return int(room[0])
	}
	return deeper(n-1, text) + int(room[len(text)-1])&1
}

//go:noinline
func recovered(n int) (result int) {
	defer func() {
		if what := recover(); what != nil {
			result = -what.(int)
		}
	}()
	if n%2 == 1 {
		panic(n)
	}
	return n
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A goroutine's stack is 2 KiB in the beginning: it is moved several times.
		fmt.Fprintf(w, "%s %d %d", r.URL.Path, deeper(200, r.URL.Path), recovered(len(r.URL.Path)))
	}))
	input := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for input.Scan() {
		var group sync.WaitGroup
		sums := make([]int, 8)
		for worker := range sums {
			group.Add(1)
			go func() {
				defer group.Done()
				for n := 0; n < 10; n++ {
					answer, err := http.Get(fmt.Sprintf("%s/%d/%d", server.URL, worker, n))
					if err != nil {
						panic(err)
					}
					text, _ := io.ReadAll(answer.Body)
					answer.Body.Close()
					for _, letter := range text {
						sums[worker] = (sums[worker]*31 + int(letter)) % 1000003
					}
				}
			}()
		}
		group.Wait()
		fmt.Println(sums)
	}
}
