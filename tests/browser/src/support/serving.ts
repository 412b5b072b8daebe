// The real `plimsoll serve`.
import assert from "node:assert/strict";
import { Running } from "./plimsoll.js";

export class Serving {
  private constructor(
    private readonly command: Running,
    /** The complete address that it printed, with the token if there is one. */
    readonly printed: string,
  ) {}

  /** Serves a folder of results, on a free port unless the flags say otherwise. */
  static async start(results: string, ...flags: string[]): Promise<Serving> {
    const listen = flags.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
    const command = new Running(["serve", "--results", results, ...listen, ...flags]);
    const printed = await command.firstLine();
    assert.match(printed, /^http:\/\/[\w.:[\]]+\/(\?token=\w+)?$/);
    return new Serving(command, printed);
  }

  /** Address and port. */
  get host(): string {
    return new URL(this.printed).host;
  }

  /** The address of a page, without the token. */
  url(path: string): string {
    return new URL(path, this.printed).href;
  }

  /** Ends it as Ctrl-C does. It must end at once, with exit code 0. */
  async end(): Promise<void> {
    this.command.signal("SIGINT");
    const { code, stderr } = await this.command.end();
    assert.equal(code, 0, stderr);
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    await this.command.kill();
  }
}
