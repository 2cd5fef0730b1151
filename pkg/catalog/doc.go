// SPDX-License-Identifier: Apache-2.0

// Package catalog is what an object store keeps in the entries of a repository: objects.
//
// An [Object] describes one stored object: where its bytes are, how many, their checksum, and what its
// owner said about it. [Encode] turns it into the value of an entry, and [Decode] back.
//
// An object has two identities. The identity of its value covers all of it: storing the very same object
// again is no change, and a change of anything is one. [Object.ContentIdentity] covers what was uploaded and
// when: it tells a new upload from an edit of tags, metadata or locks. Both are hashes of the fields by rules
// written down with them, so that neither depends on how objects are stored.
//
// A [Catalog] has the operations of S3 on them: a repository is a bucket, and a branch, the default one unless another is named,
// is what the bucket shows. keys.go says where in a branch the versions of objects are, transition.go what changes when a version
// comes or goes, keeplocked.go what must not go with a move of the branch, settings.go how a process knows whether versions are
// kept without asking each time. Every change is one transaction of package graveler.
//
// Objects that a newer program wrote keep the fields that this one does not know, through Decode and Encode.
package catalog
