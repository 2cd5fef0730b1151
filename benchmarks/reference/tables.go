// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

// Record is a key with its value.
type Record struct{ Key, Value []byte }

const (
	// tableBytes is about the size of a range file, blockBytes that of a block in one, before compression.
	tableBytes = 1 << 20
	blockBytes = 16 << 10
	// syncsAtOnce is how many files are synced at a time.
	syncsAtOnce = 8
)

// Tables are sorted records in files of Pebble's format.
type Tables struct{ files []table }

type table struct {
	path   string
	first  []byte          // key
	reader *sstable.Reader // nil: not opened yet
}

// WriteTables writes records, which must be sorted by key, into new files of a directory, and syncs them together, and the directory.
func WriteTables(dir string, records []Record) (*Tables, error) {
	t := &Tables{}
	for len(records) > 0 {
		path := filepath.Join(dir, fmt.Sprintf("%06d.sst", len(t.files)))
		n, err := writeTable(path, records)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		t.files = append(t.files, table{path: path, first: records[0].Key})
		records = records[n:]
	}
	var g errgroup.Group
	g.SetLimit(syncsAtOnce)
	for i := range t.files {
		g.Go(func() error { return syncPath(t.files[i].path) })
	}
	g.Go(func() error { return syncPath(dir) })
	return t, g.Wait()
}

// writeTable writes as many records as fit into one file, and returns their number.
func writeTable(path string, records []Record) (n int, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	w := sstable.NewWriter(&tableFile{file: f, buffer: bufio.NewWriterSize(f, 64<<10)}, sstable.WriterOptions{
		BlockSize: blockBytes, Compression: sstable.SnappyCompression, TableFormat: sstable.TableFormatMax,
	})
	for size := 0; n < len(records) && size < tableBytes && err == nil; n++ {
		r := records[n]
		size += len(r.Key) + len(r.Value)
		err = w.Set(r.Key, r.Value)
	}
	return n, errors.Join(err, w.Close())
}

// tableFile is a file that a table is written to. Unlike Pebble's own it leaves the sync to others.
type tableFile struct {
	file   *os.File
	buffer *bufio.Writer
}

func (f *tableFile) Write(p []byte) error {
	_, err := f.buffer.Write(p)
	return err
}

func (f *tableFile) Finish() error { return errors.Join(f.buffer.Flush(), f.file.Close()) }

// Abort leaves a part of a file, in a directory that is removed anyway.
func (f *tableFile) Abort() { _ = f.file.Close() }

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Scan reads up to limit records from a key on, in order, and returns how many there were. Files that it opens stay open.
func (t *Tables) Scan(from []byte, limit int) (n int, err error) {
	for i := range t.files {
		if n >= limit || i+1 < len(t.files) && string(t.files[i+1].first) <= string(from) {
			continue
		}
		found, err := t.files[i].scan(from, limit-n)
		if err != nil {
			return n, fmt.Errorf("read %s: %w", t.files[i].path, err)
		}
		n += found
	}
	return n, nil
}

// Close closes the files that Scan has opened.
func (t *Tables) Close() error {
	var errs []error
	for i := range t.files {
		if r := t.files[i].reader; r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}

func (t *table) scan(from []byte, limit int) (n int, err error) {
	if t.reader == nil {
		if t.reader, err = openTable(t.path); err != nil {
			return 0, err
		}
	}
	it, err := t.reader.NewIter(block.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for kv := it.SeekGE(from, 0); kv != nil && n < limit; kv = it.Next() {
		if _, _, err := kv.Value(nil); err != nil {
			return n, err
		}
		n++
	}
	return n, it.Error()
}

func openTable(path string) (*sstable.Reader, error) {
	f, err := vfs.Default.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	schema := colblk.DefaultKeySchema(pebble.DefaultComparer, 16)
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{KeySchemas: sstable.MakeKeySchemas(&schema)})
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return r, nil
}
