package wire

import (
	"errors"
	"time"

	"github.com/coder/websocket"
)

// Closing is an error that says with which code the gateway ends a session.
type Closing interface {
	error
	CloseCode() int
}

// Finish ends a WebSocket as the error that ended its reading wants it. A client that does not read has this long to
// take the close frame. It is for the reading goroutine.
func Finish(socket *websocket.Conn, conn *Conn, err error, patience time.Duration) {
	code := websocket.StatusProtocolError
	var reason Closing
	switch {
	case errors.As(err, &reason):
		code = websocket.StatusCode(reason.CloseCode())
	case websocket.CloseStatus(err) != -1 || conn.Err() != nil:
		// The client said so, and the library has answered; or it is gone.
		_ = socket.CloseNow()
		return
	}
	// What remains was found by the library, which names a violation only in words, and has said 1002 already or says
	// nothing (an unmasked frame): then this does.
	conn.Refuse(patience)
	_ = socket.Close(code, "")
}
