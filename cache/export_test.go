package cache

import "hash/maphash"

// NewRegistryLike makes a registry whose hashes are those of others with the seed.
func NewRegistryLike(seed maphash.Seed) *Registry {
	r := NewRegistry(1<<40, 0)
	r.seed = seed
	return r
}

// TextsMoved is how many texts have been moved. Nobody may use the registry meanwhile.
func (r *Registry) TextsMoved() (n uint64) {
	for i := range r.shards {
		n += r.shards[i].texts.moves
	}
	return n
}
