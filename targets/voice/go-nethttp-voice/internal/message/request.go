package message

// SpeakRequest is the body of POST /speak.
type SpeakRequest struct {
	Text string
	TTS  TTSConfig
}

// RequestFault is the cause of a 400 or a 413.
type RequestFault string

// The causes.
const (
	BadJSON     RequestFault = "bad_json"
	BadField    RequestFault = "bad_field"
	EmptyText   RequestFault = "empty_text"
	LargeText   RequestFault = "too_large"
	noneOfThese RequestFault = ""
)

// ParseRequest reads the body of POST /speak. The last result says what is wrong in words.
func ParseRequest(body []byte) (*SpeakRequest, RequestFault, string) {
	fields, failure := parseFields(body, "", BadMessage)
	if failure != nil {
		return nil, BadJSON, failure.Message
	}
	request := &SpeakRequest{Text: needed[string](fields, "text")}
	tts := fields.object("tts_config")
	var unsupported *Failure
	request.TTS, unsupported = tts.ttsConfig()
	for _, failure := range []*Failure{fields.failure, tts.failure, unsupported} {
		if failure != nil {
			return nil, BadField, failure.Message
		}
	}
	switch {
	case request.Text == "":
		return nil, EmptyText, "text is empty"
	case len(request.Text) > SpeakBytesMax:
		return nil, LargeText, Failed(TooLarge, "text is longer than %d bytes", SpeakBytesMax).Message
	}
	return request, noneOfThese, ""
}
