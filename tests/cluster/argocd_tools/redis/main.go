// A Redis for one test: miniredis in a process of its own, as Argo CD's programs share a cache there.
//
// Its clock stands still by itself, so entries would never expire; here it goes with the machine's.
package main

import (
	"log"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	before := time.Now()
	for now := range time.Tick(time.Second) {
		server.FastForward(now.Sub(before))
		before = now
	}
}
