// SPDX-License-Identifier: Apache-2.0

// Package stest tests stores: whatever implements [graveler.Refs] and [graveler.Staging] must pass it, so that package graveler
// is the same on all of them.
//
// A store may refuse texts with a zero byte, and writes within a repository that has no record; nothing else that package graveler may write.
package stest

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

const uid = "cv0example0000000000" // as long as an xid

// Refs runs the tests of the records, each on a new store.
func Refs(t *testing.T, open func(t *testing.T) graveler.Refs) {
	for name, test := range map[string]func(t *testing.T, refs graveler.Refs){
		"writes land only on the record that was read": writesLandOnlyOnTheRecordThatWasRead,
		"tags are created once and removed as read":    tagsAreCreatedOnceAndRemovedAsRead,
		"what is not there is named":                   whatIsNotThereIsNamed,
		"what could not be read back is not written":   whatCouldNotBeReadBackIsNotWritten,
		"records come back with every field":           recordsComeBackWithEveryField,
		"records with nothing optional come back":      recordsWithNothingOptionalComeBack,
		"moves scanned are moves put":                  movesScannedAreMovesPut,
		"log names are those of the name":              logNamesAreThoseOfTheName,
		"scans begin where asked":                      scansBeginWhereAsked,
		"long scans are whole":                         longScansAreWhole,
		"the watermark only rises":                     theWatermarkOnlyRises,
		"cleanups are replaced, removed and dropped":   cleanupsAreReplacedRemovedAndDropped,
		"pins come back by owner":                      pinsComeBackByOwner,
		"expirations come back by commit":              expirationsComeBackByCommit,
		"log bounds change by compare and set":         logBoundsChangeByCompareAndSet,
		"logs go piece by piece":                       logsGoPieceByPiece,
		"settings of any size come back":               settingsOfAnySizeComeBack,
		"settings are listed by name":                  settingsAreListedByName,
		"bad settings are refused":                     badSettingsAreRefused,
		"concurrent writers see whole documents":       concurrentWritersSeeWholeDocuments,
		"a repository is another than its predecessor": aRepositoryIsAnotherThanItsPredecessor,
		"concurrent writers of a branch take turns":    concurrentWritersOfABranchTakeTurns,
		"what precedes a branch record is there":       whatPrecedesABranchRecordIsThere,
		"a call of a canceled context does nothing":    aCallOfACanceledContextDoesNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Staging runs the tests of staged entries, each on a new store. The records that fences rely on are in refs.
func Staging(t *testing.T, open func(t *testing.T) (graveler.Refs, graveler.Staging)) {
	for name, test := range map[string]func(t *testing.T, refs graveler.Refs, s graveler.Staging){
		"staged entries come back":                            stagedEntriesComeBack,
		"fenced writes land while the branch is as read":      fencedWritesLandWhileTheBranchIsAsRead,
		"conditional writes land on what was read":            conditionalWritesLandOnWhatWasRead,
		"conditional writes of all kinds land together":       conditionalWritesOfAllKindsLandTogether,
		"checks hold for what lands and leave no trace":       checksHoldForWhatLandsAndLeaveNoTrace,
		"of writes that check each other's keys one lands":    ofWritesThatCheckEachOthersKeysOneLands,
		"bad writes are refused":                              badWritesAreRefused,
		"what is within the limits is not too large":          whatIsWithinTheLimitsIsNotTooLarge,
		"scans see what is staged below the prefix":           scansSeeWhatIsStagedBelowThePrefix,
		"a token is dropped alone":                            aTokenIsDroppedAlone,
		"nothing is staged behind a seal":                     nothingIsStagedBehindASeal,
		"a call of a canceled context stages nothing":         aCallOfACanceledContextStagesNothing,
		"of writes on one condition one lands, however many":  ofWritesOnOneConditionOneLands,
		"a scan goes on past a page, and ends with the token": aScanGoesOnPastAPage,
	} {
		t.Run(name, func(t *testing.T) {
			refs, s := open(t)
			test(t, refs, s)
		})
	}
}

// Repository is one named lake that has a record.
func Repository(t require.TestingT, refs graveler.Refs) *graveler.Repository {
	r := repository()
	stamp, err := refs.PutRepository(context.Background(), r)
	require.NoError(t, err)
	r.Stamp = stamp
	return r
}

func repository() *graveler.Repository {
	return &graveler.Repository{ID: "lake", UID: uid, State: graveler.RepositoryActive, DefaultBranch: "main"}
}

func branch() *graveler.Branch {
	return &graveler.Branch{
		ID: "main", UID: uid, State: graveler.BranchLive, Head: "c1", Token: "lake-main:t1", Nonce: "n1",
		ItemCounter: 2, Items: []graveler.Item{{Number: 2, Prefix: graveler.Key("logs/")}, {Number: 1, Token: "lake-main:t0"}},
		LastMove: graveler.Move{Time: 10, Op: graveler.OpCreate, New: "c1"},
	}
}

// Collect returns all that a scan yields.
func Collect[T any](t require.TestingT, seq iter.Seq2[T, error]) []T {
	var all []T
	for v, err := range seq {
		require.NoError(t, err)
		all = append(all, v)
	}
	return all
}

// LastError is what a scan ends with.
func LastError[T any](seq iter.Seq2[T, error]) error {
	var last error
	for _, err := range seq {
		last = err
	}
	return last
}
