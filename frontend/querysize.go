package frontend

import "github.com/pgebb/pgebb/internal/wire"

// This file keeps clients to query_size_limit.

// sizeLimit is what texts are held to.
type sizeLimit struct {
	bytes int  // 0 is no limit
	block bool // what is longer is refused; otherwise it is logged
}

// textSize is about how long the text of a message is, in bytes; 0 for one without.
func textSize(typ byte, size int) int {
	switch typ {
	case wire.Query:
		return size - wire.HeaderSize - 1
	case wire.Parse:
		return size - wire.HeaderSize - 4 // and the name, and the types of parameters
	}
	return 0
}

// tooLong refuses a message whose text is longer than it may be.
func (c *Client) tooLong(typ byte, size int) *Error {
	if l := c.f.sizes.Load(); l.block && l.bytes > 0 && textSize(typ, size) > l.bytes {
		return errQuerySize(textSize(typ, size), l.bytes)
	}
	return nil
}

// noteLength logs a message whose text is longer than it should be.
func (c *Client) noteLength(typ byte, size int) {
	if l := c.f.sizes.Load(); !l.block && l.bytes > 0 && textSize(typ, size) > l.bytes {
		set := c.pool.Settings()
		c.f.log.Warn("a statement is longer than query_size_limit", "client_id", c.id, "user", set.User, "database", set.Database,
			"bytes", textSize(typ, size), "query_size_limit", l.bytes)
	}
}
