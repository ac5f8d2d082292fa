package admin

import (
	"cmp"
	"slices"
	"time"
)

// CachedQuery is a line of SHOW QUERY_CACHE.
type CachedQuery struct {
	Query string // with other constants, and without comments
	Hits  uint64
	Bytes int64
	Idle  time.Duration
}

// QuerySource is where the console gets what it shows of the query cache.
type QuerySource interface {
	QueryCache() []CachedQuery
	ResetQueryCache()
}

// queryCommands are those about the query cache.
func queryCommands() []Command {
	return []Command{
		{
			Names:   []string{"SHOW QUERY_CACHE"},
			Doc:     "One line for each statement whose parse is kept, the most used first; texts that differ in constants only share one. pgebb does not shard, so there is no multi. idle is in milliseconds, to the second.",
			Columns: concat(text("query"), numeric("hits", "direct", "multi", "bytes", "idle")),
			Dialect: PgDog, ReadOnly: true, run: showQueryCache,
		},
		{
			Names: []string{"RESET QUERY_CACHE"}, Dialect: PgDog, Tag: "RESET",
			Doc: "Forget all parsed statements.",
			run: func(r *request) ([][]*string, error) {
				r.src.Queries.ResetQueryCache()
				return nil, nil
			},
		},
	}
}

func showQueryCache(r *request) ([][]*string, error) {
	all := r.src.Queries.QueryCache()
	slices.SortStableFunc(all, func(a, b CachedQuery) int { return cmp.Compare(b.Hits, a.Hits) })
	var rows [][]*string
	for _, q := range all {
		rows = append(rows, row(q.Query, q.Hits, q.Hits, 0, int(q.Bytes), int(q.Idle.Milliseconds())))
	}
	return rows, nil
}
