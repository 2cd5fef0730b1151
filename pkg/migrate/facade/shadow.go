// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// shadowed is refs whose reads of some kinds are made on the other side, too.
type shadowed struct {
	*refs
	others map[Kind]graveler.Refs // of the kinds that are compared, the side that does not have them
	report report

	twins  sync.Map // by UID, the *graveler.Repository of the other side; nil where that is the same
	tokens sync.Map // by the staging token of a branch, that of the branch there
}

// twin returns the repository of the other side that repo is compared with: the same, or one that was carried over, which has a UID of its own.
func (s *shadowed) twin(ctx context.Context, other graveler.Refs, repo *graveler.Repository) (twin *graveler.Repository, carried bool, err error) {
	known, ok := s.twins.Load(repo.UID)
	if !ok {
		switch twin, err = other.GetRepository(ctx, repo.ID); {
		case err != nil:
			return nil, false, err
		case twin.UID == repo.UID:
			twin = nil
		case !isCarried(repo, twin):
			return nil, false, fmt.Errorf("repository %s: %w", repo.ID, ErrOtherRepository)
		}
		known, _ = s.twins.LoadOrStore(repo.UID, twin)
	}
	if twin = known.(*graveler.Repository); twin == nil {
		return repo, false, nil
	}
	return twin, true, nil
}

// isCarried reports whether of two repositories of one name one was made of the other by package migrate, which keeps the time of the creation.
func isCarried(a, b *graveler.Repository) bool {
	return a != nil && b != nil && a.UID != b.UID && a.CreatedAt.Equal(b.CreatedAt)
}

// within reads from a repository, and compares. Records that cannot be the same where a repository was carried over are not compared there.
func within[T any](ctx context.Context, s *shadowed, k Kind, repo *graveler.Repository, what string, c comparison[T], read func(graveler.Refs, *graveler.Repository) (T, error)) (T, error) {
	answer, err := read(s.refs, repo)
	other := s.others[k]
	if other == nil {
		return answer, err
	}
	var shadow T
	twin, carried, otherErr := s.twin(ctx, other, repo)
	if carried && c.native {
		return answer, err
	}
	if otherErr == nil {
		shadow, otherErr = read(other, twin)
	}
	compare(ctx, s.report.of(k), fmt.Sprintf("%s of %s", what, repo.ID), c, step[T]{answer, err}, step[T]{shadow, otherErr}, carried)
	return answer, err
}

// scanned is within for scans.
func scanned[T any](ctx context.Context, s *shadowed, k Kind, repo *graveler.Repository, what string, c comparison[T], scan func(graveler.Refs, *graveler.Repository) iter.Seq2[T, error]) iter.Seq2[T, error] {
	other := s.others[k]
	if other == nil {
		return scan(s.refs, repo)
	}
	return func(yield func(T, error) bool) {
		answers := scan(s.refs, repo)
		twin, carried, err := s.twin(ctx, other, repo)
		if carried && c.native {
			answers(yield)
			return
		}
		shadows := func(yield func(T, error) bool) {
			var none T
			yield(none, err)
		}
		if err == nil {
			shadows = scan(other, twin)
		}
		alongside(ctx, s.report.of(k), fmt.Sprintf("%s of %s", what, repo.ID), c, answers, shadows, func(T, T) bool { return carried })(yield)
	}
}

func (s *shadowed) GetRepository(ctx context.Context, id graveler.RepositoryID) (*graveler.Repository, error) {
	r, err := s.refs.GetRepository(ctx, id)
	if other := s.others[Repositories]; other != nil {
		o, otherErr := other.GetRepository(ctx, id)
		compare(ctx, s.report.of(Repositories), "repository "+string(id), ofRepository, step[*graveler.Repository]{r, err}, step[*graveler.Repository]{o, otherErr}, isCarried(r, o))
	}
	return r, err
}

func (s *shadowed) ScanRepositories(ctx context.Context, from graveler.RepositoryID) iter.Seq2[*graveler.Repository, error] {
	answers := s.refs.ScanRepositories(ctx, from)
	if other := s.others[Repositories]; other != nil {
		return alongside(ctx, s.report.of(Repositories), "repositories", ofRepository, answers, other.ScanRepositories(ctx, from), isCarried)
	}
	return answers
}

// setting is what GetSetting returns.
type setting struct {
	document []byte
	stamp    graveler.Stamp
}

func (s *shadowed) GetSetting(ctx context.Context, repo *graveler.Repository, name string) ([]byte, graveler.Stamp, error) {
	v, err := within(ctx, s, Repositories, repo, "setting "+name, ofSetting, func(side graveler.Refs, repo *graveler.Repository) (setting, error) {
		document, stamp, err := side.GetSetting(ctx, repo, name)
		return setting{document, stamp}, err
	})
	return v.document, v.stamp, err
}

func (s *shadowed) ScanSettings(ctx context.Context, repo *graveler.Repository) iter.Seq2[string, error] {
	return scanned(ctx, s, Repositories, repo, "settings", as[string](), func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[string, error] {
		return side.ScanSettings(ctx, repo)
	})
}

func (s *shadowed) ScanPins(ctx context.Context, repo *graveler.Repository) iter.Seq2[graveler.Pin, error] {
	return scanned(ctx, s, Repositories, repo, "pins", ofPin, func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[graveler.Pin, error] {
		return side.ScanPins(ctx, repo)
	})
}

func (s *shadowed) GetExpiration(ctx context.Context, repo *graveler.Repository, id graveler.CommitID) (graveler.Expiration, error) {
	return within(ctx, s, Repositories, repo, "expiration "+string(id), ofExpiration, func(side graveler.Refs, repo *graveler.Repository) (graveler.Expiration, error) {
		return side.GetExpiration(ctx, repo, id)
	})
}

func (s *shadowed) ScanExpirations(ctx context.Context, repo *graveler.Repository) iter.Seq2[graveler.Expiration, error] {
	return scanned(ctx, s, Repositories, repo, "expirations", ofExpiration, func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[graveler.Expiration, error] {
		return side.ScanExpirations(ctx, repo)
	})
}

func (s *shadowed) GetBranch(ctx context.Context, repo *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	return within(ctx, s, Branches, repo, "branch "+string(id), s.ofBranch(), func(side graveler.Refs, repo *graveler.Repository) (*graveler.Branch, error) {
		return side.GetBranch(ctx, repo, id)
	})
}

func (s *shadowed) ScanBranches(ctx context.Context, repo *graveler.Repository, from graveler.BranchID) iter.Seq2[*graveler.Branch, error] {
	return scanned(ctx, s, Branches, repo, "branches", s.ofBranch(), func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[*graveler.Branch, error] {
		return side.ScanBranches(ctx, repo, from)
	})
}

// ofBranch also notes under what token the other side has what is staged on a branch that was carried over.
func (s *shadowed) ofBranch() comparison[*graveler.Branch] {
	return comparison[*graveler.Branch]{plain: plainBranch, met: func(answer, shadow *graveler.Branch) {
		if answer.Token != shadow.Token {
			s.tokens.Store(answer.Token, shadow.Token)
		}
	}}
}

func (s *shadowed) ScanMoves(ctx context.Context, repo *graveler.Repository, uid string, from, through int64) iter.Seq2[graveler.Move, error] {
	return scanned(ctx, s, Branches, repo, "log "+uid, native[graveler.Move](), func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[graveler.Move, error] {
		return side.ScanMoves(ctx, repo, uid, from, through)
	})
}

func (s *shadowed) ScanLogNames(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID) iter.Seq2[graveler.LogName, error] {
	return scanned(ctx, s, Branches, repo, "names of logs", native[graveler.LogName](), func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[graveler.LogName, error] {
		return side.ScanLogNames(ctx, repo, branch)
	})
}

func (s *shadowed) LogStart(ctx context.Context, repo *graveler.Repository, uid string) (int64, error) {
	return within(ctx, s, Branches, repo, "start of log "+uid, native[int64](), func(side graveler.Refs, repo *graveler.Repository) (int64, error) {
		return side.LogStart(ctx, repo, uid)
	})
}

func (s *shadowed) GetCommit(ctx context.Context, repo *graveler.Repository, id graveler.CommitID) (*graveler.Commit, error) {
	return within(ctx, s, Commits, repo, "commit "+string(id), ofCommit, func(side graveler.Refs, repo *graveler.Repository) (*graveler.Commit, error) {
		return side.GetCommit(ctx, repo, id)
	})
}

func (s *shadowed) ScanCommits(ctx context.Context, repo *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	return scanned(ctx, s, Commits, repo, "commits", ofCommit, func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[*graveler.Commit, error] {
		return side.ScanCommits(ctx, repo, from)
	})
}

func (s *shadowed) GetTag(ctx context.Context, repo *graveler.Repository, id graveler.TagID) (*graveler.Tag, error) {
	return within(ctx, s, Tags, repo, "tag "+string(id), ofTag, func(side graveler.Refs, repo *graveler.Repository) (*graveler.Tag, error) {
		return side.GetTag(ctx, repo, id)
	})
}

func (s *shadowed) ScanTags(ctx context.Context, repo *graveler.Repository, from graveler.TagID) iter.Seq2[*graveler.Tag, error] {
	return scanned(ctx, s, Tags, repo, "tags", ofTag, func(side graveler.Refs, repo *graveler.Repository) iter.Seq2[*graveler.Tag, error] {
		return side.ScanTags(ctx, repo, from)
	})
}
