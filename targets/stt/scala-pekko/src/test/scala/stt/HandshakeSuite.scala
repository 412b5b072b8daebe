package stt

class HandshakeSuite extends munit.FunSuite:
  private val key = "dGhlIHNhbXBsZSBub25jZQ=="
  private val good = List(
    "Host: example.org",
    "Upgrade: WebSocket",
    "connection: keep-alive, Upgrade",
    s"Sec-WebSocket-Key: $key",
    "Sec-WebSocket-Version:13",
  )

  private def parse(headers: List[String], line: String = "GET /ws/stt HTTP/1.1"): Option[Handshake] =
    Handshake.parse((line :: headers).mkString("", "\r\n", "\r\n\r\n"))

  test("a plain handshake is taken, with the answer of RFC 6455"):
    val handshake = parse("Authorization: Bearer x" :: good)
    assertEquals(handshake, Some(Handshake(key, Some("Bearer x"))))
    assert(handshake.get.response.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))

  test("anything else is left to Pekko HTTP"):
    for i <- good.indices do assertEquals(parse(good.patch(i, Nil, 1)), None, good(i))
    for line <- good do assertEquals(parse(line :: good), None, s"twice: $line")
    val wrong = List(
      1 -> "Upgrade: h2c",
      2 -> "Connection: close",
      3 -> "Sec-WebSocket-Key: c2hvcnQ=",
      4 -> "Sec-WebSocket-Version: 8",
    )
    for (i, line) <- wrong do assertEquals(parse(good.updated(i, line)), None, line)
    for line <- List("Content-Length: 5", "Transfer-Encoding: chunked", "no colon", " folded: x", "X: \u0001") do
      assertEquals(parse(good :+ line), None, line)
    for line <- List("POST /ws/stt HTTP/1.1", "GET /ws/stt HTTP/1.0", "GET /ws HTTP/1.1", "GET /ws/stt?x HTTP/1.1") do
      assertEquals(parse(good, line), None, line)
