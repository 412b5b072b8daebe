// An echo server: the target of the trials that the live page shows. Run by itself, it listens on PORT, as Plimsoll
// starts its targets.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";

/** Starts a server. Returns its port and a function that ends it. */
export async function startEcho(port: number): Promise<{ port: number; server: Server; end(): void }> {
  // Answers /health with "ok".
  const server = createServer((_, response) => response.end("ok"));
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  sockets.on("connection", (socket) => {
    socket.on("error", () => socket.terminate());
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  server.listen(port, "0.0.0.0");
  await once(server, "listening");
  const end = () => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, server, end };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  await startEcho(Number(process.env.PORT ?? 0));
  process.on("SIGTERM", () => process.exit(0));
}
