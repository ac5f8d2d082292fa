package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestAFloodOfLinesIsCounted(t *testing.T) {
	var out bytes.Buffer
	h := newDedup(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}), time.Minute, 2)
	var ends []func()
	h.(dedup).after = func(d time.Duration, f func()) {
		if d != time.Minute {
			t.Errorf("a window is %v long", d)
		}
		ends = append(ends, f)
	}
	log := slog.New(h)
	for i := range 5 {
		log.Info("client connected", "client_id", i)
	}
	log.With("user", "ann").Info("client connected")
	log.Warn("client connected")
	log.Info("another")
	for _, end := range ends {
		end()
	}
	log.Info("client connected", "client_id", 9)
	want := `level=INFO msg="client connected" client_id=0
level=INFO msg="client connected" client_id=1
level=WARN msg="client connected"
level=INFO msg=another
level=INFO msg="client connected" left_out=4 within=1m0s
level=INFO msg="client connected" client_id=9
`
	if out.String() != want {
		t.Errorf("the log is\n%s\nwant\n%s", out.String(), want)
	}
}

func TestWithoutAWindowEveryLineIsWritten(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newDedup(slog.NewTextHandler(&out, nil), 0, 2))
	for range 5 {
		log.Info("x")
	}
	if n := strings.Count(out.String(), "msg=x"); n != 5 {
		t.Errorf("%d lines of 5 are written", n)
	}
}
