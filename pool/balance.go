package pool

import "math/rand/v2"

// pick chooses one of some pools by load_balancing_strategy.
func (c *Cluster) pick(m *members, from []*Pool) *Pool {
	if len(from) == 1 {
		return from[0]
	}
	switch m.strategy {
	case "round_robin":
		return from[int(c.turn.Add(1)-1)%len(from)]
	case "least_active_connections":
		return c.leastActive(from)
	case "weighted_round_robin":
		return c.weighted(from)
	}
	return from[rand.IntN(len(from))]
}

// leastActive is the pool with the fewest servers in use and clients that wait; of several,
// each in its turn.
func (c *Cluster) leastActive(from []*Pool) *Pool {
	first := int(c.turn.Add(1)-1) % len(from)
	var best *Pool
	least := 0
	for i := range from {
		p := from[(first+i)%len(from)]
		if n := p.active(); best == nil || n < least {
			best, least = p, n
		}
	}
	return best
}

// weighted is smooth weighted round robin: each pool earns its weight at each turn, and
// the richest pays for all. So of the weights 3 and 1 come a, a, b, a.
func (c *Cluster) weighted(from []*Pool) *Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.credits == nil {
		c.credits = make(map[*Pool]int, len(from))
	}
	var best *Pool
	total := 0
	for _, p := range from {
		w := p.Settings().Weight
		if w == 0 {
			continue
		}
		total += w
		c.credits[p] += w
		if best == nil || c.credits[p] > c.credits[best] {
			best = p
		}
	}
	if best == nil { // none has a weight
		return from[int(c.turn.Add(1)-1)%len(from)]
	}
	c.credits[best] -= total
	return best
}
