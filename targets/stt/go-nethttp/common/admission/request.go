package admission

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// WantsUpgrade says whether a request is one for a WebSocket.
func WantsUpgrade(r *http.Request) bool {
	return hasToken(r.Header["Connection"], "upgrade") && hasToken(r.Header["Upgrade"], "websocket")
}

func hasToken(fields []string, token string) bool {
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// Authorized compares the bearer token in a time that does not tell how much of it is right. An empty token lets
// everybody in.
func Authorized(r *http.Request, token string) bool {
	if token == "" {
		return true
	}
	const scheme = "Bearer "
	field := r.Header.Get("Authorization")
	if len(field) < len(scheme) || !strings.EqualFold(field[:len(scheme)], scheme) {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(field[len(scheme):]), []byte(token)) == 1
}
