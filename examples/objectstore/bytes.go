// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"sync"
	"time"
)

// byteStore keeps the bytes of objects, each in a file of its own that never changes: <bucket>/<random name>. That is the
// address, which the object's entry in Moraine holds. It is safe for concurrent use by one process.
type byteStore struct {
	root *os.Root

	mu       sync.Mutex
	underway map[string]bool // addresses of puts that have not ended
}

// addressForm tells our addresses from those of others, who may have put entries into the same repository.
var addressForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{2,62}/[A-Z2-7]{26}$`)

func openBytes(dir string) (*byteStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &byteStore{root: root, underway: map[string]bool{}}, nil
}

func (s *byteStore) close() error { return s.root.Close() }

// allocate begins a put: it returns an address that was never used, and keeps its bytes from clean-up until settle.
func (s *byteStore) allocate(bucket string) string {
	address := bucket + "/" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway[address] = true
	return address
}

// settle ends a put: no entry with this address is put from now on, so that the address is in use, or will never be.
func (s *byteStore) settle(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.underway, address)
}

// write makes the file of an address and returns the number of its bytes and their MD5 sum. When it returns nil they survive the
// loss of power, with the names that lead to them.
func (s *byteStore) write(address string, from io.Reader) (size int64, etag string, err error) {
	bucket := path.Dir(address)
	if err := s.root.Mkdir(bucket, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, "", err
	}
	f, err := s.root.OpenFile(address, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	sum := md5.New()
	size, err = io.Copy(io.MultiWriter(f, sum), from)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, "", fmt.Errorf("write %s: %w", address, err)
	}
	return size, hex.EncodeToString(sum.Sum(nil)), errors.Join(s.sync(bucket), s.sync("."))
}

// sync makes the names in a directory durable.
func (s *byteStore) sync(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// open opens the bytes of an object, which must be as many as its entry says.
func (s *byteStore) open(address string, size int64) (*os.File, error) {
	if !addressForm.MatchString(address) {
		return nil, fmt.Errorf("address %q is not one of this store", address)
	}
	f, err := s.root.Open(address)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("%s has %d bytes, its entry says %d", address, info.Size(), size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// remove removes the bytes of an address. It may be repeated.
func (s *byteStore) remove(address string) error {
	err := s.root.Remove(address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// buckets returns the names of the buckets that have bytes.
func (s *byteStore) buckets() (names []string, err error) {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// settled returns the addresses of a bucket that have bytes and whose puts have ended.
func (s *byteStore) settled(bucket string) (map[string]bool, error) {
	entries, err := fs.ReadDir(s.root.FS(), bucket)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		address := bucket + "/" + e.Name()
		// An address is under way before it has a file: a file that was seen, and is not under way now, is of a put that has ended.
		if addressForm.MatchString(address) && !s.underway[address] {
			found[address] = true
		}
	}
	return found, nil
}

// looked returns, of each address in a bucket that the last look found nothing to refer to, when that was found first. What
// cannot be read is begun anew, which keeps bytes longer and harms nobody.
func (s *byteStore) looked(bucket string) map[string]time.Time {
	since := map[string]time.Time{}
	data, err := s.root.ReadFile(bucket + ".unreferenced.json")
	if err != nil || json.Unmarshal(data, &since) != nil {
		return nil
	}
	return since
}

func (s *byteStore) noteLook(bucket string, since map[string]time.Time) error {
	data, err := json.Marshal(since)
	if err != nil {
		return err
	}
	return s.root.WriteFile(bucket+".unreferenced.json", data, 0o600)
}
