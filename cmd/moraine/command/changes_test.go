// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
)

// The time of an event, as JSON has it, is exactly where to go on.
func TestChangesGoOnAfterTheTimeOfAnEvent(t *testing.T) {
	s := newLake(t)
	for _, key := range []string{"a", "b", "c"} {
		s.ok("put", "lake/main:"+key)
		s.ok("commit", "lake/main", "-m", key)
	}
	all := s.objects("changes", "lake/main")
	require.Len(t, all, 4)
	require.Equal(t, "head", all[0]["kind"])
	for i, event := range all {
		first := s.objects("changes", "lake/main", "--until", event["time"].(string))
		require.Len(t, first, i+1)
		require.Equal(t, all, append(first, s.objects("changes", "lake/main", "--after", event["time"].(string))...))
	}
	require.Equal(t, []string{"+ b"}, lines(s.ok("changes", "lake/main", "--net", "--after", all[1]["time"].(string), "--until", all[2]["time"].(string))))
	require.Empty(t, s.ok("changes", "lake/main", "--after", "0s"))
	require.Empty(t, s.ok("changes", "lake/main", "--until", "1h"))
	require.Contains(t, s.fails(2, "changes", "lake/main", "--after", "1h", "--until", "2h"), "--until is before --after")
}

func TestInstants(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 1, time.UTC)
	for text, want := range map[string]int64{
		"0s": now.UnixNano(), "24h": now.UnixNano() - int64(24*time.Hour), "2026-01-31T12:00:00.000000001Z": now.UnixNano(), "1970-01-02": int64(24 * time.Hour),
		"1300-01-01": 0, "1969-12-31": 0, "2300-01-01": math.MaxInt64, "1000000h": 0,
	} {
		got, err := parseInstant(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "x", "-1h", "24", "2026-01-31T12:00"} {
		_, err := parseInstant(text, now)
		require.ErrorAs(t, err, &usageError{}, text)
	}
}

// A log that retention has shortened is listed from where it begins, and what is asked for beyond is an error that says where that is.
func TestChangesOfATruncatedLog(t *testing.T) {
	s := newLake(t)
	for _, key := range []string{"a", "b", "c"} {
		s.ok("put", "lake/main:"+key)
		s.ok("commit", "lake/main", "-m", key)
	}
	all := s.objects("changes", "lake/main")
	start, err := time.Parse(time.RFC3339Nano, all[2]["time"].(string))
	require.NoError(t, err)
	s.truncate("main", start.UnixNano())

	require.Equal(t, all[2:], s.objects("changes", "lake/main"))
	require.Equal(t, []string{"+ b", "+ c"}, lines(s.ok("changes", "lake/main", "--net")))
	message := s.fails(3, "changes", "lake/main", "--after", "2026-01-31")
	earliest := time.Unix(0, start.UnixNano()-1).UTC().Format(time.RFC3339Nano)
	require.Equal(t, "moraine: read the log of branch lake/main: branch log is truncated: it begins after "+earliest+" (begin there, or later)", message)
	require.Equal(t, all[2:], s.objects("changes", "lake/main", "--after", earliest))
}

// truncate shortens the log of a branch, as retention does.
func (s *shell) truncate(branch graveler.BranchID, start int64) {
	s.Helper()
	store := s.open(kv.OpenOptions{})
	defer func() { require.NoError(s, store.Close()) }()
	refs := ref.New(store)
	repo, err := refs.GetRepository(s.Context(), "lake")
	require.NoError(s, err)
	b, err := refs.GetBranch(s.Context(), repo, branch)
	require.NoError(s, err)
	require.NoError(s, refs.PutLogStart(s.Context(), repo, b.UID, start))
	for m, err := range refs.ScanMoves(s.Context(), repo, b.UID, 0, start-1) {
		require.NoError(s, err)
		require.NoError(s, refs.RemoveMove(s.Context(), repo, b.UID, m.Time))
	}
}

// following is a command that goes on until it is told to end.
type following struct {
	stdout, stderr *bufio.Scanner
	end            func() (code int)
}

func (s *shell) follow(args ...string) *following {
	ctx, cancel := context.WithCancel(s.Context())
	stdout, toStdout := io.Pipe()
	stderr, toStderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, nil, append(append([]string{}, s.global...), args...), toStdout, toStderr)
		toStdout.Close()
		toStderr.Close()
	}()
	return &following{bufio.NewScanner(stdout), bufio.NewScanner(stderr), func() int { cancel(); return <-code }}
}

func (f *following) expect(t *testing.T, from *bufio.Scanner, text string) {
	t.Helper()
	require.True(t, from.Scan(), "expected %q", text)
	require.Contains(t, from.Text(), text)
}

func TestChangesAreFollowed(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:a")
	s.ok("commit", "lake/main", "-m", "x")
	s.ok("branch", "create", "lake/dev", "lake/main")
	f := s.follow("changes", "lake/dev", "--follow", "--interval", "100ms")
	f.expect(t, f.stdout, "* branch created")
	s.ok("rm", "lake/dev:a")
	s.ok("commit", "lake/dev", "-m", "y")
	f.expect(t, f.stdout, "- a")
	s.ok("branch", "delete", "lake/dev")
	f.expect(t, f.stdout, "* branch deleted")
	s.ok("branch", "create", "lake/dev", "lake/main")
	f.expect(t, f.stdout, "* branch created")
	s.ok("put", "lake/dev:b")
	s.ok("commit", "lake/dev", "-m", "z")
	f.expect(t, f.stdout, "+ b")
	require.Zero(t, f.end())
	require.False(t, f.stdout.Scan(), f.stdout.Text())
	require.False(t, f.stderr.Scan(), f.stderr.Text())
}

func TestFollowingWaitsForAStoreThatIsLocked(t *testing.T) {
	s := newLake(t)
	store := s.open(kv.OpenOptions{})
	f := s.follow("changes", "lake/main", "--follow", "--interval", "100ms")
	f.expect(t, f.stderr, "locked")
	require.NoError(t, store.Close())
	f.expect(t, f.stdout, "* branch created")
	require.Zero(t, f.end())
	require.False(t, f.stderr.Scan(), "it is said once: %s", f.stderr.Text())
}

func TestFollowingEndsWithAnErrorWhereThereIsNothingToFollow(t *testing.T) {
	s := newLake(t)
	require.Contains(t, s.fails(3, "changes", "lake/none", "--follow"), "branch not found")
	require.Contains(t, s.fails(2, "changes", "lake/main", "--follow", "--interval", "0s"), "--interval 0s")
	require.Contains(t, s.fails(2, "changes", "lake/main", "--interval", "5s"), "--interval is for --follow")
}
