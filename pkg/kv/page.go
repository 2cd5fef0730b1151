// SPDX-License-Identifier: Apache-2.0

package kv

const (
	// chunkBytes is how much memory the entries of a large page share. One that is kept keeps its chunk, so it is little.
	chunkBytes = 16 << 10
	// ownBytes is the size from which an entry has memory of its own.
	ownBytes = chunkBytes / 4
)

// PageBuilder collects the entries of one page for a [ReadPage]. It copies them: into memory of their own where the page is small, as the pages of
// short scans are, else many into one piece, since making a piece for each would be most of the work of a long scan. The zero value is of no use.
type PageBuilder struct {
	limit, size int
	entries     []Entry
	chunk       []byte // what is left of the last piece
}

// NewPage returns a builder of the page that is asked for.
func NewPage(r PageRequest) *PageBuilder {
	b := &PageBuilder{limit: r.Limit}
	if r.Limit > firstPage {
		b.entries = make([]Entry, 0, min(r.Limit, largePage))
	}
	return b
}

// Full reports whether the page has as many entries as it was asked for, or [PageBytes].
func (b *PageBuilder) Full() bool { return len(b.entries) >= b.limit || b.size >= PageBytes }

// Add puts copies of key and value, which may be nil, into the page.
func (b *PageBuilder) Add(key, value []byte) {
	n := len(key) + len(value)
	memory := b.take(n)
	copy(memory, key)
	copy(memory[len(key):], value)
	b.entries = append(b.entries, Entry{Key: memory[:len(key):len(key)], Value: memory[len(key):n:n]})
	b.size += n
}

// take returns n bytes that nobody else has.
func (b *PageBuilder) take(n int) []byte {
	if b.limit <= firstPage || n >= ownBytes {
		return make([]byte, n)
	}
	if n > len(b.chunk) {
		b.chunk = make([]byte, chunkBytes)
	}
	taken := b.chunk[:n:n]
	b.chunk = b.chunk[n:]
	return taken
}

// Entries returns what was added.
func (b *PageBuilder) Entries() []Entry { return b.entries }
