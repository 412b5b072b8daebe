package stt.websocket

/** Why the gateway ends a session, with the WebSocket close code. */
enum CloseReason(val code: Int):
  /** The gateway shuts down. */
  case GoingAway extends CloseReason(1001)

  /** The client broke the protocol, or did not start in time. */
  case Protocol extends CloseReason(1002)

  /** A binary message that is not one frame of audio. */
  case FrameSize extends CloseReason(1003)

  /** A message whose declared length is over the limit. */
  case TooLarge extends CloseReason(1009)

  /** The buffer is full and the policy is `close`. */
  case Overflow extends CloseReason(1013)
