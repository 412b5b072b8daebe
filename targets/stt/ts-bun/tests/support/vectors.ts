/** The golden vectors that all gateways share. */

import { readFileSync } from "node:fs";

/** The cases of one file, as the caller knows them to be. */
export function vectors<Case extends { readonly id: string }>(name: string): readonly Case[] {
  const text = readFileSync(new URL(`../../../vectors/${name}.json`, import.meta.url), "utf8");
  const { cases } = JSON.parse(text) as { readonly cases: readonly Case[] };
  if (cases.length === 0) throw new Error(`${name}.json has no cases`);
  return cases;
}
