package backend

import (
	"fmt"
	"maps"
	"runtime"
	"sync"
	"unsafe"
	"weak"

	"github.com/pgebb/pgebb/internal/memory"
)

// setText is what all equal sets of run-time parameters point to. It is immutable.
type setText struct {
	text string // name NUL value NUL …, by name
}

// setTexts finds the text that there is already. It keeps none alive: what nobody uses any
// more goes with a collection, and is counted until then.
type setTexts struct {
	mu     sync.Mutex
	byText map[string]weak.Pointer[setText] // guarded by mu
	bytes  int64                            // of texts; guarded by mu
	peak   int                              // most entries since the map was made; guarded by mu
}

// sets are those of the process.
var sets = setTexts{byText: make(map[string]weak.Pointer[setText])}

// setCost is what a text takes besides itself: its setText, the object behind the weak
// pointer to it, and about its share of the map.
const setCost = int64(unsafe.Sizeof(setText{})) + 16 + 64 + 40

func (t *setTexts) intern(text string) *setText {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byText[text].Value(); p != nil {
		return p
	}
	p := &setText{text}
	w := weak.Make(p)
	t.byText[text] = w
	t.peak = max(t.peak, len(t.byText))
	t.bytes += memory.SizeOf(len(text)) + setCost
	runtime.AddCleanup(p, func(text string) { t.gone(text, w) }, text)
	return p
}

// gone is called when the text of a weak pointer has been collected.
func (t *setTexts) gone(text string, w weak.Pointer[setText]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes -= memory.SizeOf(len(text)) + setCost
	if t.byText[text] == w { // there may be a new one already
		delete(t.byText, text)
	}
	if t.peak >= 256 && len(t.byText) <= t.peak/4 { // a map never shrinks
		t.byText = maps.Collect(maps.All(t.byText))
		t.peak = len(t.byText)
	}
}

// SetsMemory is what all sets of run-time parameters of clients and servers take, each
// counted once.
func SetsMemory() memory.Holding {
	sets.mu.Lock()
	defer sets.mu.Unlock()
	return memory.Holding{Name: "parameter_sets", Doc: "run-time parameters of sessions, each set once", Bytes: sets.bytes, Items: int64(len(sets.byText))}
}

// VerifySets counts again what SetsMemory says.
func VerifySets() error {
	sets.mu.Lock()
	defer sets.mu.Unlock()
	var sum int64
	for text := range sets.byText {
		sum += memory.SizeOf(len(text)) + setCost
	}
	// A text that has been made anew before the old one's end was told is counted twice.
	if sets.bytes < sum {
		return fmt.Errorf("sets of parameters of %d bytes are counted as %d", sum, sets.bytes)
	}
	return nil
}
