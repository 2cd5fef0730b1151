// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// shadowedStaging is the staging of one side, whose reads are made on the other side, too.
type shadowedStaging struct {
	graveler.Staging
	other  graveler.Staging
	refs   *shadowed
	report report
}

// there is the token under which the other side has what is staged under token.
func (s shadowedStaging) there(token graveler.StagingToken) graveler.StagingToken {
	if there, ok := s.refs.tokens.Load(token); ok {
		return there.(graveler.StagingToken)
	}
	return token
}

func (s shadowedStaging) Get(ctx context.Context, token graveler.StagingToken, key graveler.Key) (graveler.Staged, error) {
	v, err := s.Staging.Get(ctx, token, key)
	o, otherErr := s.other.Get(ctx, s.there(token), key)
	compare(ctx, s.report, fmt.Sprintf("%q staged under %s", key, token), ofStaged, step[graveler.Staged]{v, err}, step[graveler.Staged]{o, otherErr}, false)
	return v, err
}

// Scan reads the other side along, entry by entry. It holds no more of it than its iterator does.
func (s shadowedStaging) Scan(ctx context.Context, token graveler.StagingToken, from, prefix graveler.Key) (graveler.Iterator[graveler.Entry], error) {
	it, err := s.Staging.Scan(ctx, token, from, prefix)
	other, otherErr := s.other.Scan(ctx, s.there(token), from, prefix)
	i := &shadowedIterator{Iterator: it, other: other, report: func(answer, shadow step[graveler.Entry]) bool {
		return compare(ctx, s.report, "what is staged under "+string(token), ofEntry, answer, shadow, false)
	}}
	if err != nil || otherErr != nil {
		i.report(step[graveler.Entry]{err: err}, step[graveler.Entry]{err: otherErr})
		if otherErr == nil {
			i.stop()
		}
		return it, err
	}
	return i, nil
}

// shadowedIterator walks two iterators side by side until they differ.
type shadowedIterator struct {
	graveler.Iterator[graveler.Entry]
	other  graveler.Iterator[graveler.Entry] // nil once they differed, or it was closed
	report func(answer, shadow step[graveler.Entry]) (differs bool)
}

func (i *shadowedIterator) Next() bool {
	more := i.Iterator.Next()
	if i.other != nil && i.report(here(i.Iterator, more), here(i.other, i.other.Next())) {
		i.stop()
	}
	return more
}

// here is what an iterator says after Next.
func here(it graveler.Iterator[graveler.Entry], more bool) step[graveler.Entry] {
	switch err := it.Err(); {
	case more:
		return step[graveler.Entry]{record: it.Item()}
	case err != nil:
		return step[graveler.Entry]{err: err}
	default:
		return step[graveler.Entry]{err: errEnd}
	}
}

func (i *shadowedIterator) SeekGE(key graveler.Key) {
	i.Iterator.SeekGE(key)
	if i.other != nil {
		i.other.SeekGE(key)
	}
}

func (i *shadowedIterator) Close() error {
	i.stop()
	return i.Iterator.Close()
}

// stop closes the other side. What Close says there was said by Next before, or is about an iterator that nobody has asked any more.
func (i *shadowedIterator) stop() {
	if i.other != nil {
		_ = i.other.Close()
		i.other = nil
	}
}
