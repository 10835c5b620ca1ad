import { Fragment } from "react";

import type { Instance } from "../api/types";
import { InstanceName } from "./InstanceName";
import { Timestamp } from "./Timestamp";

const INSTANT = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/;
const INSTANCE = /[^\s,;()]+@-@[^\s,;:()]+/;
/** What a message quotes: a command, a property or a character. */
const CODE = /`[^`]+`/;
const TOKENS = new RegExp(`(${CODE.source}|${INSTANT.source}|${INSTANCE.source})`);

/** A server message with instants in the viewer's time zone, instances by name and quoted text as code. */
export function MessageText({ text, known }: { text: string; known?: Instance[] }) {
  return tokenize(text).map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the same text may occur twice; a token is identified by its position.
    <Fragment key={index}>
      {token.kind === "instant" ? (
        <Timestamp at={token.text} />
      ) : token.kind === "instance" ? (
        <InstanceName id={token.text} known={known} />
      ) : token.kind === "code" ? (
        <code className="mono">{token.text}</code>
      ) : (
        token.text
      )}
    </Fragment>
  ));
}

interface Token {
  kind: "text" | "code" | "instant" | "instance";
  text: string;
}

export function tokenize(text: string): Token[] {
  return text
    .split(TOKENS)
    .filter((token) => token !== "")
    .map((token) => {
      if (CODE.test(token)) return { kind: "code", text: token.slice(1, -1) };
      if (token.includes("@-@")) return { kind: "instance", text: token };
      return { kind: INSTANT.test(token) ? "instant" : "text", text: token };
    });
}
