// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/cmd/moraine/internal/listing"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// listingImport is the import of a listing under way.
type listingImport struct {
	at       address
	relative bool
	name     string // of the listing
	reader   *listing.Reader
	entries  int
	bytes    int64
}

func (a *app) importListing(ctx context.Context, stdin io.Reader, at address, f importFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	l := listingImport{at: at, relative: f.relative, name: "standard input"}
	in, size := io.NopCloser(stdin), int64(0)
	if f.listing != "-" {
		l.name = escape(f.listing)
		if in, size, err = openFile(f.listing); err != nil {
			return err
		}
	}
	id, err := a.readListing(ctx, &l, in, size, o, f)
	if err := errors.Join(err, in.Close()); err != nil {
		return err
	}
	return a.printListing(&l, o.Format, id)
}

// openFile opens a file. The size of what is no regular file is 0.
func openFile(name string) (io.ReadCloser, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, 0, nil
	}
	return f, info.Size(), nil
}

func (a *app) readListing(ctx context.Context, l *listingImport, in io.Reader, size int64, o listing.Options, f importFlags) (id graveler.CommitID, err error) {
	bar := a.newProgress()
	defer bar.end()
	if size > 0 {
		bar.begin(l.name, size)
	}
	if l.reader, err = listing.NewReader(listingReader{ctx, in, bar}, o); err != nil {
		return "", fmt.Errorf("%s: %w", l.name, err)
	}
	err = a.useBranch(ctx, writing, l.at, func(s *moraine.Store) error {
		id, err = a.importCommit(ctx, s, l.at, f, l.name, l.all)
		return err
	})
	return id, err
}

// options say how to read the listing.
func (f *importFlags) options() (listing.Options, error) {
	o := listing.Options{Format: listing.Format(f.format), Schema: f.schema}
	switch o.Format {
	case "":
		var clear bool
		if o.Format, clear = listing.FormatOf(f.listing); !clear {
			return o, usageError{fmt.Sprintf("--listing %s: its name does not tell the format: give --format jsonl, csv or s3-inventory", escape(f.listing))}
		}
	case listing.JSONL, listing.CSV, listing.S3Inventory:
	default:
		return o, usageError{fmt.Sprintf("--format %q: expected jsonl, csv or s3-inventory", f.format)}
	}
	if f.schema != "" && o.Format != listing.S3Inventory {
		return o, usageError{"--schema is for --format s3-inventory"}
	}
	return o, nil
}

// all is the sequence of the listing's entries.
func (l *listingImport) all(yield func(graveler.Entry, error) bool) {
	for {
		item, err := l.reader.Next()
		if err == io.EOF {
			return
		}
		var e graveler.Entry
		if err == nil {
			e, err = l.entry(item)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", l.name, err)
		}
		l.entries++
		l.bytes += min(item.Object.Size, math.MaxInt64-l.bytes)
		if !yield(e, err) || err != nil {
			return
		}
	}
}

func (l *listingImport) entry(item listing.Item) (graveler.Entry, error) {
	key := graveler.Key(item.Key)
	if l.relative {
		key = append(bytes.Clone(l.at.key), key...)
	}
	value, err := catalog.Encode(item.Object)
	if err == nil {
		err = graveler.ValidateKey(key)
	}
	switch {
	case err != nil:
	case !bytes.HasPrefix(key, l.at.key):
		err = hinted{fmt.Errorf("%w: key %s does not begin with %s", graveler.ErrInvalidName, escape(key), escape(l.at.key)), "--relative puts it in front of every key"}
	case key[0] == 0:
		err = fmt.Errorf("%w: key %s begins with a zero byte: such keys are reserved", graveler.ErrInvalidName, escape(key))
	}
	if err != nil {
		return graveler.Entry{}, fmt.Errorf("line %d: %w", item.Line, err)
	}
	return graveler.Entry{Key: key, Value: &value}, nil
}

func (a *app) printListing(l *listingImport, format listing.Format, commit graveler.CommitID) error {
	view := struct {
		Entries       int               `json:"entries"`
		Bytes         int64             `json:"bytes"`
		DeleteMarkers int               `json:"delete_markers"`
		Noncurrent    int               `json:"noncurrent_versions"`
		Commit        graveler.CommitID `json:"commit,omitempty"`
	}{l.entries, l.bytes, l.reader.DeleteMarkers, l.reader.Noncurrent, commit}
	fields := []string{"Entries", strconv.Itoa(view.Entries), "Size", formatSize(view.Bytes)}
	if format == listing.S3Inventory {
		fields = append(fields, "Skipped", fmt.Sprintf("%s, %s", plural(view.DeleteMarkers, "delete marker", "delete markers"), plural(view.Noncurrent, "noncurrent version", "noncurrent versions")))
	}
	if commit != "" {
		fields = append(fields, "Commit", string(commit))
	}
	return a.printer.record(view, fields...)
}

// listingReader ends when its context does, and shows how far it is.
type listingReader struct {
	ctx context.Context
	r   io.Reader
	bar *progress
}

func (l listingReader) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := l.r.Read(p)
	l.bar.advance(n)
	return n, err
}
