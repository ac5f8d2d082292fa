package memory

import (
	"errors"
	"testing"
)

func TestTheLedgerIsWhatItsHoldersSayByName(t *testing.T) {
	var l Ledger
	bytes := int64(7)
	l.Register(Holder{Memory: func() []Holding { return []Holding{{Name: "b", Bytes: bytes}, {Name: "c", Bytes: 100, Place: InC}} }})
	l.Register(Holder{Memory: func() []Holding { return []Holding{{Name: "a", Bytes: 3}} }})
	bytes = 8
	all := l.Holdings()
	if len(all) != 3 || all[0].Name != "a" || all[2].Name != "c" {
		t.Fatalf("%+v", all)
	}
	if Sum(all, OnHeap) != 11 || Sum(all, InC) != 100 {
		t.Errorf("%d bytes on the heap and %d in C, want 11 and 100", Sum(all, OnHeap), Sum(all, InC))
	}
	if err := l.Verify(); err != nil {
		t.Error(err)
	}
}

func TestTheLedgerTellsWhatCannotBe(t *testing.T) {
	one := func(h ...Holding) func() []Holding { return func() []Holding { return h } }
	for name, h := range map[string]Holder{
		"negative bytes":     {Memory: one(Holding{Name: "a", Bytes: -1})},
		"negative items":     {Memory: one(Holding{Name: "a", Items: -1})},
		"a name that is two": {Memory: one(Holding{Name: "a"}, Holding{Name: "a"})},
		"a wrong sum":        {Memory: one(), Verify: func() error { return errors.New("wrong") }},
	} {
		var l Ledger
		if l.Register(h); l.Verify() == nil {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
}
