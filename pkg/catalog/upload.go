// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/catalog/catalogpb"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// Upload is a multipart upload that was initiated, and neither completed nor aborted.
type Upload struct {
	Key       string
	UploadID  string // as long as an ID of a version; later ones are greater
	Initiated time.Time
	// Object is what was said about the object that it is to become.
	Object Object

	// replaced counts the parts that have taken the place of others: who has read parts while it was the same has read what is there.
	replaced int64
	unknown  []byte // fields that a newer program wrote
}

func (u *Upload) place() graveler.Key { return uploadKey(u.Key, u.UploadID) }

// value returns the value of the upload's entry. Its identity is SHA-256 of a tag, the identity of the object, and all else, in
// the form of Object.identity.
func (u *Upload) value() (graveler.Value, error) {
	if err := u.Object.check(); err != nil {
		return graveler.Value{}, err
	}
	m := &catalogpb.UploadData{Object: messageOf(&u.Object), InitiatedAt: nanoseconds(u.Initiated), Replaced: u.replaced}
	m.ProtoReflect().SetUnknown(u.unknown)
	f := fields(nil).text("moraine upload 1").text(string(u.Object.identity())).time(u.Initiated).number(u.replaced)
	if len(u.unknown) > 0 {
		f = f.text(string(u.unknown))
	}
	return encodeRecord(m, f)
}

func encodeRecord(m proto.Message, f fields) (graveler.Value, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return graveler.Value{}, fmt.Errorf("%w: %w", graveler.ErrInvalidValue, err)
	}
	v := graveler.Value{Identity: f.hash(), Data: data}
	return v, graveler.ValidateValue(&v)
}

// DecodeUpload returns the upload of an entry of KindUpload. What is none is graveler.ErrInvalidValue.
func DecodeUpload(at Place, v graveler.Value) (Upload, error) {
	m := &catalogpb.UploadData{}
	if err := proto.Unmarshal(v.Data, m); err != nil {
		return Upload{}, fmt.Errorf("decode upload %s of %q: %w: %w", at.UploadID, at.Key, graveler.ErrInvalidValue, err)
	}
	if m.Object == nil {
		return Upload{}, fmt.Errorf("decode upload %s of %q: %w: it has no object", at.UploadID, at.Key, graveler.ErrInvalidValue)
	}
	return Upload{
		Key: at.Key, UploadID: at.UploadID, Initiated: timeOf(m.InitiatedAt), Object: objectOf(m.Object),
		replaced: m.Replaced, unknown: bytes.Clone(m.ProtoReflect().GetUnknown()),
	}, nil
}

// loadUpload returns an upload, NoSuchUpload where there is none.
func loadUpload(ctx context.Context, r Reader, key, id string) (Upload, error) {
	found, err := r.Get(ctx, uploadKey(key, id))
	if err != nil {
		return Upload{}, err
	}
	if found[0] == nil {
		return Upload{}, fmt.Errorf("%w %q", NoSuchUpload, id)
	}
	return DecodeUpload(Place{Kind: KindUpload, Key: key, UploadID: id}, *found[0])
}

// checkUpload refuses what names no upload.
func checkUpload(key, id string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if !isID(id) {
		return fmt.Errorf("%w %q", NoSuchUpload, id)
	}
	return nil
}

// CreateUpload initiates a multipart upload of an object, of which all is said but address, size, checksum and time. It costs one
// write of the key/value store.
func (c *Catalog) CreateUpload(ctx context.Context, b Bucket, key string, o Object) (Upload, error) {
	now := c.now()
	o.PhysicalAddress, o.Size, o.Checksum, o.ModifiedAt, o.VersionID, o.DeleteMarker, o.NoncurrentSince = "", 0, "", time.Time{}, "", false, time.Time{}
	u := Upload{Key: key, Initiated: now.UTC(), Object: o}
	err := checkPut(now, key, &o)
	if err == nil {
		err = c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, s settings) (int, error) {
			if s.ObjectLock == nil && o.Lock != (Lock{}) {
				return 0, errNoObjectLock
			}
			u.UploadID = newUploadID(now.UnixNano())
			v, err := u.value()
			if err == nil {
				tx.Set(u.place(), v)
			}
			return 1, err
		})
	}
	if err != nil {
		return Upload{}, describe(err, "create upload", b, key)
	}
	return u, nil
}

// AbortUpload ends an upload, NoSuchUpload where there is none, and returns its parts, whose bytes nobody needs any more. On an
// error after which it is NoSuchUpload, Mend removes and returns the parts that are left. Of an abort and a completion at the
// same time one takes place.
func (c *Catalog) AbortUpload(ctx context.Context, b Bucket, key, uploadID string) ([]Part, error) {
	err := checkUpload(key, uploadID)
	if err == nil {
		err = c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, _ settings) (int, error) {
			u, err := loadUpload(ctx, tx, key, uploadID)
			if err == nil {
				tx.Delete(u.place())
			}
			return 1, err
		})
	}
	var parts []Part
	if err == nil {
		parts, err = c.removeParts(ctx, b, key, uploadID)
	}
	return parts, describe(err, "abort upload "+uploadID+" of", b, key)
}
