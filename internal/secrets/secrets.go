// Package secrets gets what servers are logged in with where it is in no file: tokens of AWS
// and Azure for their Postgres, and passwords from HashiCorp Vault, those of clients as well.
//
// A [Keeper] has what was fetched until it is to be fetched anew, and lets only one of many
// who want the same fetch it. Everything here blocks, for as long as a context allows, and
// so is for goroutines that may: nothing of it belongs on an event loop.
//
// The caveat that bites: errors go into the log. None may have a secret in it, so neither
// bodies of answers nor URLs with a query are ever put into one (see http.go).
package secrets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/memory"
)

// ErrRefused is wrapped when there is no use in trying again soon: somebody has said no, or
// something is not configured.
var ErrRefused = errors.New("no credentials")

// Want is who wants credentials, and for which server.
type Want struct {
	config.External
	User string // that servers log in as, unless the credentials have another
	Host string
	Port int
}

// key is what wants that are served by the same are kept under: a token of Azure is for all, and
// what Vault gives is for all hosts of a database.
func (w Want) key() Want {
	switch w.Method {
	case config.AzureToken:
		return Want{External: config.External{Method: w.Method}}
	case config.VaultDynamic, config.VaultStatic:
		w.Host, w.Port = "", 0
	}
	return w
}

// Secret is what a server is logged in with.
type Secret struct {
	User     string    // in place of the configured one; empty if that holds
	Password string    // never logged
	Until    time.Time // servers that were logged in with it are to be gone by then; zero if they can stay
	end      time.Time // what Until is once there ought to be another secret, and is not
	fetched  time.Time
}

const (
	// Limit bounds in bytes what a Keeper keeps. What is over it is fetched again.
	Limit = 4 << 20

	// leastAge is how old a lease must be that a server has refused before there is another:
	// each is a new role in Postgres.
	leastAge = 5 * time.Second
)

// Keeper keeps credentials. It is safe for concurrent use.
type Keeper struct {
	log  *slog.Logger
	env  func(string) string // constant
	now  func() time.Time    // constant
	http *callers            // constant

	secrets *store[Want, Secret]
	tokens  *store[config.Vault, string] // of logins to Vault
	keys    *store[awsRole, awsKeys]     // of AWS
	imds    *store[struct{}, string]     // sessions with the metadata service
}

// New makes an empty one, which looks for its settings in the environment where those who
// define the credentials say so.
func New(log *slog.Logger) *Keeper { return newKeeper(log, os.Getenv, time.Now) }

func newKeeper(log *slog.Logger, env func(string) string, now func() time.Time) *Keeper {
	return &Keeper{
		log: log, env: env, now: now, http: newCallers(),
		secrets: newStore(Limit/2, now, func(w Want, s Secret) int { return wantCost + len(w.Path) + len(s.User) + len(s.Password) }),
		tokens:  newStore(Limit/8, now, func(_ config.Vault, token string) int { return len(token) }),
		keys:    newStore(Limit/8, now, func(r awsRole, k awsKeys) int { return len(r.arn) + len(k.id) + len(k.secret) + len(k.session) }),
		imds:    newStore(Limit/8, now, func(_ struct{}, token string) int { return len(token) }),
	}
}

// wantCost is about what an entry costs besides its texts. Those of the configuration are the
// configuration's.
const wantCost = 400

// Get returns credentials, from what is kept if that will do.
func (k *Keeper) Get(ctx context.Context, w Want) (Secret, error) {
	s, stale, err := k.secrets.get(ctx, w.key(), func(ctx context.Context) (Secret, life, error) { return k.fetch(ctx, w) })
	if stale != nil {
		k.log.Warn("credentials could not be renewed; those there are go on to be used", "user", w.User, "from", w.Method, "error", stale)
	}
	if !s.Until.IsZero() && !k.now().Before(s.Until) {
		s.Until = s.end // otherwise a server would be too old from the start
	}
	return s, err
}

func (k *Keeper) fetch(ctx context.Context, w Want) (s Secret, l life, err error) {
	started := k.now()
	switch w.Method {
	case config.RDSIAM:
		s.Password, l, err = k.rdsToken(ctx, w)
	case config.AzureToken:
		s.Password, l, err = k.azureToken(ctx)
	case config.VaultDynamic, config.VaultStatic:
		s, l, err = k.vaultSecret(ctx, w)
	default:
		err = fmt.Errorf("%w: %s is unknown", ErrRefused, w.Method)
	}
	if err != nil {
		return Secret{}, life{}, err
	}
	s.fetched = k.now()
	as := s.User
	if as == "" {
		as = w.User
	}
	level := slog.LevelInfo
	if w.Method == config.RDSIAM {
		level = slog.LevelDebug // it is made here, for each user
	}
	k.log.Log(ctx, level, "credentials fetched", "user", w.User, "from", w.Method, "as", as, "valid_for", l.length(s.fetched), "took", s.fetched.Sub(started))
	return s, l, nil
}

// Reject says that a server has not taken a secret, and reports whether it may be another
// next time: it may have been replaced before its time, or revoked.
func (k *Keeper) Reject(w Want, s Secret) bool {
	least := leastAge
	if w.Method != config.VaultDynamic {
		least = leastLife
	}
	if k.now().Sub(s.fetched) < least {
		return false
	}
	k.secrets.drop(w.key(), func(kept Secret) bool { return kept.User == s.User && kept.Password == s.Password })
	if w.Method == config.RDSIAM {
		k.keys.dropAll() // those that the token was signed with may have been revoked
	}
	return true
}

// Retain forgets what only those want who are not wanted any more.
func (k *Keeper) Retain(wanted []Want) {
	vaults, keys := make(map[config.Vault]bool), make(map[Want]bool)
	aws := false
	for _, w := range wanted {
		keys[w.key()] = true
		vaults[w.Vault] = true
		aws = aws || w.Method == config.RDSIAM
	}
	k.secrets.retain(func(w Want) bool { return keys[w] })
	k.tokens.retain(func(v config.Vault) bool { return vaults[v] })
	if !aws {
		k.keys.dropAll()
	}
}

// Memory is what is kept.
func (k *Keeper) Memory() memory.Holding {
	h := memory.Holding{Name: "secrets", Doc: "credentials that are in no file", Limit: Limit}
	for _, size := range []func() (int64, int64){k.secrets.size, k.tokens.size, k.keys.size, k.imds.size} {
		bytes, items := size()
		h.Bytes += bytes
		h.Items += items
	}
	return h
}
