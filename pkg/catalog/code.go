// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"net/http"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Code is an error of the S3 API, by the name that S3 gives it. Errors of this package wrap one where S3 has one: errors.Is(err, NoSuchKey).
type Code string

// The codes that this package returns.
const (
	AccessDenied                         Code = "AccessDenied"
	BadDigest                            Code = "BadDigest"
	BucketAlreadyExists                  Code = "BucketAlreadyExists"
	BucketNotEmpty                       Code = "BucketNotEmpty"
	EntityTooLarge                       Code = "EntityTooLarge"
	EntityTooSmall                       Code = "EntityTooSmall"
	InternalError                        Code = "InternalError"
	InvalidArgument                      Code = "InvalidArgument"
	InvalidBucketName                    Code = "InvalidBucketName"
	InvalidBucketState                   Code = "InvalidBucketState"
	InvalidPart                          Code = "InvalidPart"
	InvalidPartOrder                     Code = "InvalidPartOrder"
	InvalidRequest                       Code = "InvalidRequest"
	InvalidTag                           Code = "InvalidTag"
	KeyTooLongError                      Code = "KeyTooLongError"
	MalformedXML                         Code = "MalformedXML"
	MetadataTooLarge                     Code = "MetadataTooLarge"
	MethodNotAllowed                     Code = "MethodNotAllowed"
	NoSuchBucket                         Code = "NoSuchBucket"
	NoSuchKey                            Code = "NoSuchKey"
	NoSuchObjectLockConfiguration        Code = "NoSuchObjectLockConfiguration"
	NoSuchUpload                         Code = "NoSuchUpload"
	NoSuchVersion                        Code = "NoSuchVersion"
	NotImplemented                       Code = "NotImplemented"
	NotModified                          Code = "NotModified"
	ObjectLockConfigurationNotFoundError Code = "ObjectLockConfigurationNotFoundError"
	OperationAborted                     Code = "OperationAborted"
	PreconditionFailed                   Code = "PreconditionFailed"
	ServiceUnavailable                   Code = "ServiceUnavailable"
)

// Error makes a Code an error.
func (c Code) Error() string { return string(c) }

// HTTPStatus returns the status of a response with the code; 500 for a code that this package does not know.
func (c Code) HTTPStatus() int {
	switch c {
	case NotModified:
		return http.StatusNotModified
	case BadDigest, EntityTooLarge, EntityTooSmall, InvalidArgument, InvalidBucketName, InvalidPart, InvalidPartOrder, InvalidRequest, InvalidTag, KeyTooLongError, MalformedXML, MetadataTooLarge:
		return http.StatusBadRequest
	case AccessDenied:
		return http.StatusForbidden
	case NoSuchBucket, NoSuchKey, NoSuchObjectLockConfiguration, NoSuchUpload, NoSuchVersion, ObjectLockConfigurationNotFoundError:
		return http.StatusNotFound
	case MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case BucketAlreadyExists, BucketNotEmpty, InvalidBucketState, OperationAborted:
		return http.StatusConflict
	case PreconditionFailed:
		return http.StatusPreconditionFailed
	case NotImplemented:
		return http.StatusNotImplemented
	case ServiceUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// CodeOf returns the code that S3 would answer with: the one that err wraps, or the one that an error of package graveler amounts
// to; "" for nil and InternalError for what S3 has no name for. What is not among the branches and refs of a repository is
// NoSuchBucket, since to users of S3 all of them are buckets.
func CodeOf(err error) Code {
	var code Code
	if err == nil || errors.As(err, &code) {
		return code
	}
	for _, c := range []struct {
		is   error
		code Code
	}{
		{graveler.ErrEntryNotFound, NoSuchKey},
		{graveler.ErrNotFound, NoSuchBucket},
		{graveler.ErrRepositoryInDeletion, NoSuchBucket},
		{graveler.ErrInvalidRef, NoSuchBucket},
		{graveler.ErrReadOnly, AccessDenied},
		{graveler.ErrProtected, AccessDenied},
		{graveler.ErrRefused, AccessDenied},
		{graveler.ErrExists, BucketAlreadyExists},
		{graveler.ErrPreconditionFailed, PreconditionFailed},
		{graveler.ErrInvalidName, InvalidArgument},
		{graveler.ErrInvalidValue, InvalidArgument},
		{graveler.ErrTooLarge, InvalidArgument},
		{graveler.ErrClosed, ServiceUnavailable},
	} {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	return InternalError
}
