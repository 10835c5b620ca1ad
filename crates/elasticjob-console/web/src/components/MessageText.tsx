import { Fragment } from "react";

import type { Instance } from "../api/types";
import { InstanceName } from "./InstanceName";
import { Timestamp } from "./Timestamp";

const INSTANT = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/;
const INSTANCE = /[^\s,;()]+@-@[^\s,;:()]+/;
const TOKENS = new RegExp(`(${INSTANT.source}|${INSTANCE.source})`);

/** A sentence of the server's; instants in it stand by the reader's clock, instances by their names. */
export function MessageText({ text, known }: { text: string; known?: Instance[] }) {
  return tokenize(text).map((piece, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the same words may be there twice: a piece is its place in the sentence.
    <Fragment key={index}>
      {piece.kind === "instant" ? (
        <Timestamp at={piece.text} />
      ) : piece.kind === "instance" ? (
        <InstanceName id={piece.text} known={known} />
      ) : (
        piece.text
      )}
    </Fragment>
  ));
}

export function tokenize(text: string): { kind: "text" | "instant" | "instance"; text: string }[] {
  return text
    .split(TOKENS)
    .filter((piece) => piece !== "")
    .map((piece) => ({
      kind: piece.includes("@-@") ? "instance" : INSTANT.test(piece) ? "instant" : "text",
      text: piece,
    }));
}
