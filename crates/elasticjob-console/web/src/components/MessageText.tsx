import { Fragment } from "react";

import type { Instance } from "../api/types";
import { InstanceName } from "./InstanceName";
import { Timestamp } from "./Timestamp";

const INSTANT = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/;
const INSTANCE = /[^\s,;()]+@-@[^\s,;:()]+/;
const TOKENS = new RegExp(`(${INSTANT.source}|${INSTANCE.source})`);

/** A server message with instants in the viewer's time zone and instances by name. */
export function MessageText({ text, known }: { text: string; known?: Instance[] }) {
  return tokenize(text).map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the same text may occur twice; a token is identified by its position.
    <Fragment key={index}>
      {token.kind === "instant" ? (
        <Timestamp at={token.text} />
      ) : token.kind === "instance" ? (
        <InstanceName id={token.text} known={known} />
      ) : (
        token.text
      )}
    </Fragment>
  ));
}

export function tokenize(text: string): { kind: "text" | "instant" | "instance"; text: string }[] {
  return text
    .split(TOKENS)
    .filter((token) => token !== "")
    .map((token) => ({
      kind: token.includes("@-@") ? "instance" : INSTANT.test(token) ? "instant" : "text",
      text: token,
    }));
}
