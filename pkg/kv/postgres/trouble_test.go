// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
)

func TestOpenSaysWhosePasswordIsWrong(t *testing.T) {
	server := testpg.Start(t)
	url := server.NewUser(t, server.NewDatabase(t), testpg.Sworn, "password 'open-sesame'")
	with := func(password string) string { return strings.Replace(url, "sworn@", "sworn:"+password+"@", 1) }
	for name, wrong := range map[string]string{
		"wrong":              with("hush-hush"),
		"wrong, perhaps TLS": strings.Replace(with("hush-hush"), "disable", "prefer", 1),
		"in the parameters":  url + "&password=hush-hush",
		"none":               url,
	} {
		_, err := kv.Open(t.Context(), wrong, engines, kv.OpenOptions{})
		require.ErrorContains(t, err, `password authentication failed for user "sworn"`, name)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "hush-hush", name)
		require.Equal(t, 1, strings.Count(err.Error(), "authentication failed"), err)
	}
	s := open(t, with("open-sesame"))
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	require.NoError(t, s.Close())
}

func TestARefusedConnectionIsReportedOnce(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	_, err = Open(t.Context(), "postgres://me@"+closed.Addr().String()+"/db", kv.OpenOptions{})
	require.Equal(t, 1, strings.Count(err.Error(), "connection refused"), err)
}

// limited opens a store with two connections of the sixteen that it would like.
func limited(t *testing.T) (s *Store, url string) {
	server := testpg.Start(t)
	url = server.NewUser(t, server.NewDatabase(t), "limited", "connection limit 2")
	return open(t, url), url
}

// connectSoon connects once the server has noticed that earlier connections have ended.
func connectSoon(t *testing.T, url string) (conn *pgx.Conn) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		conn, err = pgx.Connect(context.Background(), url)
		return err == nil
	}, waitLong, waitStep)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

func TestAStoreGoesOnWithTheConnectionsThatItGets(t *testing.T) {
	s, _ := limited(t)
	ctx := t.Context()
	var g errgroup.Group
	for i := range 64 {
		g.Go(func() error {
			var err error
			key := fmt.Appendf(nil, "k-%d", i)
			for n := range 10 {
				_, read := s.Get(ctx, part, []byte("absent"))
				if !errors.Is(read, kv.ErrNotFound) {
					err = errors.Join(err, read)
				}
				err = errors.Join(err, s.SetIf(ctx, part, fmt.Appendf(key, "-%d", n), []byte("v"), kv.Absent), s.Set(ctx, part, key, []byte("w")))
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.LessOrEqual(t, s.pool.Stat().TotalConns(), int32(2))
}

func TestCallsWaitForTheConnectionsOfOthers(t *testing.T) {
	s, url := limited(t)
	ctx := t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("v")))
	s.pool.Reset()
	others := []*pgx.Conn{connectSoon(t, url), connectSoon(t, url)}

	_, err := kv.Open(ctx, url, engines, kv.OpenOptions{})
	require.ErrorContains(t, err, `too many connections for role "limited"`)
	outcome := make(chan error, 2)
	go func() { outcome <- s.Set(ctx, part, []byte("k"), []byte("not executed")) }()
	go func() { _, err := s.Get(ctx, part, []byte("k")); outcome <- err }()
	for range 2 {
		require.ErrorContains(t, <-outcome, `too many connections for role "limited"`, "after some seconds")
	}

	refused := s.pool.Stat().NewConnsCount() + 2
	go func() { outcome <- s.SetIf(ctx, part, []byte("k"), []byte("w"), kv.Equals([]byte("v"))) }()
	go func() { _, err := s.Get(ctx, part, []byte("k")); outcome <- err }()
	require.Eventually(t, func() bool { return s.pool.Stat().NewConnsCount() >= refused }, waitLong, waitStep)
	for _, conn := range others {
		require.NoError(t, conn.Close(ctx))
	}
	require.NoError(t, <-outcome)
	require.NoError(t, <-outcome)
	item, err := s.Get(ctx, part, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "w", string(item.Value))
}

func TestWaitingForAConnectionEndsWithTheContext(t *testing.T) {
	s, url := limited(t)
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	held, err := s.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer held.Release()
	connectSoon(t, url)
	refused := s.pool.Stat().NewConnsCount() + 3
	ctx, cancel := context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	go func() { _, err := s.Get(ctx, part, []byte("k")); outcome <- err }()
	require.Eventually(t, func() bool { return s.pool.Stat().NewConnsCount() >= refused }, waitLong, waitStep)
	cancel()
	require.ErrorIs(t, <-outcome, context.Canceled)
}

const valueBytes = 100_000

// crammed returns a store whose disk takes some dozens of values, and what makes room for as many more.
func crammed(t *testing.T) (s *Store, url string, room func()) {
	server := testpg.Start(t)
	const megabyte = 1 << 20
	disk, err := server.NewDisk(t, 18*megabyte, 4*megabyte)
	if err == nil {
		return open(t, disk.URL), disk.URL, func() { disk.Drop(t) }
	}
	t.Logf("a trigger stands in for a full disk: %v", err)
	url = server.NewDatabase(t)
	s = open(t, url)
	conn := connect(t, url)
	limit := func(rows int) {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(`
			create or replace function moraine.limited() returns trigger language plpgsql as $$ begin
				if (select count(*) from moraine.kv) >= %d then
					raise exception 'could not extend file: No space left on device' using errcode = '53100';
				end if;
				return new;
			end $$`, rows))
		require.NoError(t, err)
	}
	limit(60)
	_, err = conn.Exec(t.Context(), `create trigger limited before insert or update on moraine.kv
		for each row execute function moraine.limited()`)
	require.NoError(t, err)
	return s, url, func() { limit(120) }
}

// cram writes until the disk is full, several writes at a time, and returns the keys of those that
// succeeded.
func cram(t *testing.T, s *Store, name string) (keys []string) {
	t.Helper()
	keys = cramBy(t, s, name, 4)
	// Where several extend a table at the same time the server asks for many pages at once, and what
	// is too little for them is enough for one that comes alone.
	return append(keys, cramBy(t, s, name+"-last", 1)...)
}

func cramBy(t *testing.T, s *Store, name string, writers int) (keys []string) {
	t.Helper()
	acknowledged := make([][]string, writers)
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			for n := range 500 {
				key := fmt.Sprintf("%s-%d-%03d", name, w, n)
				if err := s.Set(t.Context(), part, []byte(key), valueOf(key)); err != nil {
					return fullDisk(err)
				}
				acknowledged[w] = append(acknowledged[w], key)
			}
			return errors.New("the disk takes everything")
		})
	}
	require.NoError(t, g.Wait())
	for _, a := range acknowledged {
		keys = append(keys, a...)
	}
	return keys
}

// fullDisk returns nil if an error is that of a full disk, and says so.
func fullDisk(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "53100" && strings.Contains(err.Error(), "No space left on device") {
		return nil
	}
	return fmt.Errorf("not the error of a full disk: %w", err)
}

// valueOf returns what cannot be compressed.
func valueOf(key string) []byte {
	var seed [32]byte
	copy(seed[:], key)
	value := make([]byte, valueBytes)
	_, _ = rand.NewChaCha8(seed).Read(value) // cannot fail
	return value
}

func requireAll(t *testing.T, s *Store, keys []string) {
	t.Helper()
	for _, key := range keys {
		item, err := s.Get(t.Context(), part, []byte(key))
		require.NoError(t, err)
		require.Equal(t, valueOf(key), item.Value, "value of %s", key)
	}
}

func TestAFullDiskFailsWritesAndNothingElse(t *testing.T) {
	s, url, room := crammed(t)
	ctx := t.Context()
	var keys []string
	fill := func(name string) {
		keys = append(keys, cram(t, s, name)...)
		requireAll(t, s, keys)
		present := kv.Present
		big := valueOf("big")
		for _, write := range []func() error{
			func() error { return s.SetIf(ctx, part, []byte("new"), big, kv.Absent) },
			func() error {
				return s.Apply(ctx, part, []kv.Write{{Key: []byte("new"), Value: big}, {Key: []byte(keys[0]), Value: big, If: &present}}, nil)
			},
			func() error {
				return s.SetMany(ctx, part, []kv.Write{{Key: []byte("new"), Value: big}})
			},
		} {
			require.NoError(t, fullDisk(write()))
		}
		_, err := s.Get(ctx, part, []byte("new"))
		require.ErrorIs(t, err, kv.ErrNotFound)
		requireAll(t, s, keys)
	}

	vacuum := func() { // sooner than the server itself would
		_, err := connect(t, url).Exec(ctx, `vacuum moraine.kv`)
		require.NoError(t, err)
	}
	fill("first")
	kept := len(keys)
	room()
	vacuum() // makes the maps of free space, for which there is no room later
	fill("second")
	require.Greater(t, len(keys), kept)

	for _, key := range keys[kept:] { // what is at the end of a file, which then gets shorter
		require.NoError(t, s.Delete(ctx, part, []byte(key)))
	}
	keys = keys[:kept]
	vacuum()
	fill("third")
	require.Greater(t, len(keys), kept, "there was room again")
}
