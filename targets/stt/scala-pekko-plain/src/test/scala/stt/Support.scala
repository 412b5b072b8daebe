package stt

import java.nio.file.{Files, Path}

import io.circe.{Decoder, Json}

/** The golden vectors that all gateways share. */
object Vectors:
  def cases(file: String): Vector[Json] =
    val text = Files.readString(Path.of("..", "vectors", s"$file.json"))
    io.circe.parser.parse(text).flatMap(_.hcursor.get[Vector[Json]]("cases")).fold(throw _, identity)

extension (json: Json)
  /** The field of an object, which must be there and of this type. */
  def field[A: Decoder](name: String): A = json.hcursor.get[A](name).fold(throw _, identity)
