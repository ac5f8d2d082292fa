package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/pgebb/pgebb/cache"
)

func show(what string) {
	names := []string{"heap/objects", "heap/unused", "heap/free", "heap/stacks", "metadata/mspan/inuse", "metadata/mspan/free", "metadata/mcache/inuse", "metadata/mcache/free", "metadata/other", "profiling/buckets", "os-stacks", "other"}
	s := make([]metrics.Sample, len(names)+1)
	for i, n := range names {
		s[i].Name = "/memory/classes/" + n + ":bytes"
	}
	s[len(names)].Name = "/gc/scan/heap:bytes"
	metrics.Read(s)
	b, _ := os.ReadFile("/proc/self/smaps_rollup")
	rss := ""
	for l := range strings.Lines(string(b)) {
		if strings.HasPrefix(l, "Rss:") {
			rss = strings.TrimSpace(l)
		}
	}
	fmt.Printf("%-8s %s", what, rss)
	for i := range s {
		n := s[i].Name[strings.LastIndex(s[i].Name, "classes/")+1:]
		n = strings.TrimPrefix(n, "lasses/")
		if v := s[i].Value.Uint64(); v > 1<<15 {
			fmt.Printf(" %s=%d", n, v>>10)
		}
	}
	fmt.Println()
}

type s64 struct {
	p *s64
	_ [56]byte
}
type s48 struct {
	p *s48
	_ [40]byte
}
type s32 struct {
	p *s32
	_ [24]byte
}
type seg [16]unsafe.Pointer

var sink []any

func garbage(n int) { // 16..64 byte mix
	for range n {
		g = make([]byte, 24)
	}
}

var g []byte
var keep [8]any

func fill[T any](n int) *[]*T {
	l := make([]*T, n)
	for i := range l {
		l[i] = new(T)
	}
	return &l
}

func main() {
	debug.FreeOSMemory()
	show("before")
	const n = 1_000_000
	var drop func()
	switch os.Args[1] {
	case "registry":
		debug.SetGCPercent(30)
		r := cache.NewRegistry(1<<40, 0)
		var names []*cache.Names
		text := make([]byte, 0, 256)
		for i := range n {
			if i < 16 {
				names = append(names, r.NewNames())
			}
			text = fmt.Appendf(text[:0], "SELECT %d AS n, '%0160d' AS p", i, i)
			st, _ := r.Intern(text, "")
			names[i%16].Put(fmt.Sprint("_pg3_", i), st)
			garbage(3)
		}
		drop = func() {
			start := time.Now()
			var wg sync.WaitGroup
			for _, n := range names {
				wg.Go(n.Close)
			}
			wg.Wait()
			fmt.Println("dropped in", time.Since(start))
			show("dropped")
			names = nil
			_ = r
		}
	case "texts":
		keep[0] = fill[[208]byte](n)
	case "blocks":
		keep[0] = fill[[65536]byte](n * 208 / 65536)
	case "blocks32":
		keep[0] = fill[[32768]byte](n * 208 / 32768)
	case "s64":
		keep[0] = fill[s64](n)
	case "s48":
		keep[0] = fill[s48](n)
	case "s32":
		keep[0] = fill[s32](n)
	case "b16":
		keep[0] = fill[[16]byte](n)
	case "seg":
		keep[0] = fill[seg](n / 16)
	}
	show("peak")
	debug.FreeOSMemory()
	show("held")
	if drop != nil {
		drop()
	}
	drop = nil
	keep = [8]any{}
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	show("left")
}
