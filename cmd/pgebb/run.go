package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/frontend"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/internal/querylog"
	"github.com/pgebb/pgebb/parser"
	"github.com/pgebb/pgebb/pool"
)

// pooler is the running program.
type pooler struct {
	src        config.Source
	log        *slog.Logger
	cfg        atomic.Pointer[config.Config]
	loops      *loop.Group
	registry   *pool.Registry
	judge      *parser.Judge
	frontend   *frontend.Frontend
	queries    *querylog.Log
	console    *admin.Console
	ledger     memory.Ledger
	accountant *memory.Accountant
	budget     *memory.Budget
	reclaim    *memory.Reclaimer
	started    time.Time

	http    []*http.Server // constant after the start
	serving sync.WaitGroup // their goroutines

	reloading sync.Mutex
	shutdown  chan admin.Shutdown // asked for by the console; one place
	instance  string              // names the process among others; constant
}

// run accepts clients until a signal or the console ends it.
func run(src config.Source, stdout, stderr io.Writer) int {
	cfg, problems := config.Load(src)
	if err := problems.Err(); err != nil {
		fmt.Fprintln(stderr, "pgebb:", err)
		return exitFailed
	}
	log := newLog(cfg, stderr)
	for _, p := range problems {
		log.Warn(p.String())
	}
	if err := memory.AllowHugePages(cfg.Memory.TransparentHugePages); err != nil {
		log.Warn("the system does not let this process say if it may have transparent huge pages", "error", err)
	}
	memory.LimitArenas(mallocArenas)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	p := &pooler{
		src: src, log: log, shutdown: make(chan admin.Shutdown, 1), started: time.Now(), instance: instance(),
		queries: querylog.New(stdout, log),
	}
	if err := p.start(cfg); err != nil {
		log.Error("pgebb cannot start", "error", err)
		return exitFailed
	}
	ctx, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { p.reclaim.Run(ctx) })
	background.Go(func() { p.console.Run(ctx) })
	background.Go(func() { p.sweepQueries(ctx) })
	if os.Getenv(verifyVariable) == "all" {
		background.Go(func() { p.verify(ctx) })
	}
	defer func() { stop(); background.Wait(); p.endQueryLog() }()
	return p.serve(signals)
}

func (p *pooler) start(cfg *config.Config) error {
	p.cfg.Store(cfg)
	p.budget = memory.NewBudget(memory.Limit(int64(cfg.Memory.Limit)))
	if limit := p.budget.Limit(); limit > 0 {
		memory.LimitHeap(limit)
		p.log.Info("memory is limited", "bytes", limit)
	}
	p.accountant = memory.NewAccountant(&p.ledger, p.budget)
	p.reclaim = memory.NewReclaimer(uint64(cfg.Memory.TrimThreshold), cfg.Memory.TrimInterval, p.accountant)
	loops, err := loop.NewGroup(cfg.General.Workers, func(from, to *loop.Loop) { p.frontend.Rebalance(from, to) })
	if err != nil {
		return err
	}
	p.loops = loops
	p.batchCalls(cfg.General.IOURing)
	if err := p.logQueries(cfg); err != nil {
		return err
	}
	loops.SetBudget(p.budget)
	p.registry = pool.NewRegistry(loops, cfg, frontend.TCPOptions(cfg), p.log)
	p.console, p.judge = p.newConsole(), p.newJudge(cfg)
	p.frontend = frontend.New(cfg, frontend.Options{
		Loops: loops, Registry: p.registry, Classifier: classifier{}, Judge: p.judge, Log: p.log, Console: operators{p}, Budget: p.budget, Queries: p.queries,
	})
	p.registerHolders()
	if err := p.listenHTTP(cfg); err != nil {
		return err
	}
	return p.frontend.Listen()
}

// batchCalls has the loops make several system calls at once, if that is wanted and possible.
func (p *pooler) batchCalls(wanted bool) {
	if !wanted {
		p.loops.MakeSingleCalls()
		return
	}
	if err := loop.Batching(); err != nil {
		p.loops.MakeSingleCalls()
		p.log.Info("system calls are made one by one, which takes more processor time", "reason", err, "hint", "docs/operations.md, io_uring")
	}
}

// serve waits for something to do.
func (p *pooler) serve(signals <-chan os.Signal) int {
	p.log.Info("pgebb is ready", "version", version(), "pools", len(p.cfg.Load().Pools()))
	p.notify(ready)
	for {
		select {
		case s := <-signals:
			switch s {
			case syscall.SIGHUP:
				p.notify(reloadingState())
				_, _ = p.Reload() // it is logged
				p.notify(ready)
			case syscall.SIGTERM:
				p.log.Info("exiting at once", "signal", s.String())
				p.frontend.Dismiss(farewell)
				return exitOK
			default:
				return p.drain(signals, p.frontend.Drain)
			}
		case how := <-p.shutdown:
			switch how {
			case admin.ShutdownNow:
				p.log.Info("exiting at once", "by", "SHUTDOWN")
				p.frontend.Dismiss(farewell)
				return exitOK
			case admin.ShutdownClients:
				p.log.Info("waiting for all clients to leave")
				return p.wait(signals)
			default:
				return p.drain(signals, p.frontend.Drain)
			}
		}
	}
}

// farewell bounds what telling clients goodbye may take when pgebb exits at once.
const farewell = 200 * time.Millisecond

// drain lets clients finish, for as long as shutdown_timeout says; then what is
// still running is cancelled if shutdown_termination_timeout is set. SIGTERM, or a
// second SIGINT, ends the wait.
func (p *pooler) drain(signals <-chan os.Signal, finish func(context.Context) int) int {
	g := &p.cfg.Load().General
	p.log.Info("shutting down", "timeout", g.ShutdownTimeout.String())
	p.notify(stopping)
	ctx, cancel := untilSignal(signals)
	defer cancel()
	left := within(ctx, g.ShutdownTimeout, finish)
	if left > 0 && g.ShutdownTerminationTimeout != config.Off && ctx.Err() == nil {
		p.log.Warn("cancelling what is still running", "clients", left)
		p.frontend.CancelAll()
		left = within(ctx, g.ShutdownTerminationTimeout, finish)
	}
	return p.end(left)
}

// wait accepts nobody any more and ends when all clients have left, however long that
// takes; SIGTERM or SIGINT end the wait.
func (p *pooler) wait(signals <-chan os.Signal) int {
	ctx, cancel := untilSignal(signals)
	defer cancel()
	return p.end(p.frontend.Await(ctx))
}

// end stops everything.
func (p *pooler) end(left int) int {
	if left > 0 {
		p.log.Warn("clients were left at the end of the shutdown", "clients", left)
		p.frontend.Dismiss(farewell)
	}
	p.frontend.Close()
	p.closeHTTP()
	closing, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	p.registry.Close(closing)
	if os.Getenv(verifyVariable) == "all" {
		p.mustVerify()
	}
	p.loops.Stop()
	p.log.Info("pgebb has shut down")
	return exitOK
}

// untilSignal is a context that ends with the next signal but SIGHUP.
func untilSignal(signals <-chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

// within runs finish for d at most.
func within(ctx context.Context, d time.Duration, finish func(context.Context) int) int {
	if d == config.Off {
		return finish(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return finish(ctx)
}

// newLog makes the log that the configuration asks for.
func newLog(cfg *config.Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.General.Level()}
	var h slog.Handler = slog.NewJSONHandler(w, options)
	if cfg.General.LogFormat == "text" {
		h = slog.NewTextHandler(w, options)
	}
	return slog.New(newDedup(h, cfg.General.LogDedupWindow, cfg.General.LogDedupThreshold))
}
