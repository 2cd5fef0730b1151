// SPDX-License-Identifier: Apache-2.0

package stest

import (
	"math"
	"reflect"
	"time"

	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Full draws a record that is valid, and has every field set to something that is not its zero value, also those that are added
// after this was written. Stamps stay nil. Texts have no zero byte.
func Full[T any](t *rapid.T) *T {
	v := new(T)
	fill(t, reflect.ValueOf(v).Elem())
	if b, ok := any(v).(*graveler.Branch); ok {
		for i := range b.Items {
			b.Items[i].Number = uint64(len(b.Items) - i)
		}
		b.ItemCounter = max(b.ItemCounter, uint64(len(b.Items)))
	}
	return v
}

func fill(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case graveler.Stamp:
		return
	case graveler.Key:
		v.SetBytes(rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "key"))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(0, rapid.Int64().Draw(t, "time")).UTC()))
		return
	case graveler.RepositoryState:
		v.SetInt(rapid.Int64Range(1, 3).Draw(t, "state"))
		return
	case graveler.BranchState:
		v.SetInt(rapid.Int64Range(1, 2).Draw(t, "state"))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != 0 }), 1, 20, -1).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(1, math.MaxInt32).Draw(t, "int"))
	case reflect.Uint8:
		v.SetUint(rapid.Uint64Range(1, math.MaxUint8).Draw(t, "byte"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64Min(1).Draw(t, "uint"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
		repair(t, v)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(1, 4).Draw(t, "length"), 4))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(1, 4).Draw(t, "length") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key)
			fill(t, value)
			v.SetMapIndex(key, value)
		}
	default:
		t.Fatalf("no values for %s", v.Type())
	}
}

// repair makes structs valid whose fields depend on one another.
func repair(t *rapid.T, v reflect.Value) {
	switch s := v.Addr().Interface().(type) {
	case *graveler.Move:
		s.Time += s.Previous
	case *graveler.Item:
		if rapid.Bool().Draw(t, "token") {
			s.Prefix = nil
		} else {
			s.Token = ""
		}
	}
}

// drawn is one record for each of so many seeds.
func drawn[T any](seeds int) []*T {
	var all []*T
	for seed := range seeds {
		all = append(all, rapid.Custom(Full[T]).Example(seed))
	}
	return all
}
