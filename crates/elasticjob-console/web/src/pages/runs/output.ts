import { useEffect, useState } from "react";

import { queryString } from "../../api/client";
import { openStream } from "../../api/eventStream";
import type { OutputLine } from "../../api/types";
import { runPath } from "./api";

export interface Output {
  lines: OutputLine[];
  /** Number of earlier lines that were dropped. */
  omitted: number;
}

/** Lines that a page keeps. */
export const MAX_LINES = 5_000;

export const NO_OUTPUT: Output = { lines: [], omitted: 0 };

/** Appends lines and drops the oldest beyond the limit. */
export function appendLines(before: Output, more: OutputLine[]): Output {
  const all = [...before.lines, ...more];
  const over = Math.max(0, all.length - MAX_LINES);
  return { lines: over > 0 ? all.slice(over) : all, omitted: before.omitted + over };
}

/** Removes ANSI escape sequences. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: ANSI escape sequences start with this character.
export const stripAnsi = (text: string) => text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "");

export type StreamState = "connecting" | "live" | "lost" | "ended";

/** Streams the output of a run, or of one shard of it. */
export function useOutput(registry: string, runId: string, shard: string) {
  const [printed, setPrinted] = useState<Output>(NO_OUTPUT);
  const [streamState, setStreamState] = useState<StreamState>("connecting");
  useEffect(() => {
    // After an interruption the server sends the output from the start again.
    let isRestarted = false;
    setPrinted(NO_OUTPUT);
    setStreamState("connecting");
    const end = openStream(`${runPath(registry, runId)}/output/events${queryString({ shard })}`, {
      onEvent: {
        lines: (data) => {
          const before = isRestarted ? () => NO_OUTPUT : (known: Output) => known;
          isRestarted = false;
          setPrinted((known) => appendLines(before(known), data as OutputLine[]));
        },
        end: () => {
          end();
          setStreamState("ended");
        },
      },
      onOpen: () => {
        isRestarted = true;
        setStreamState("live");
      },
      onLost: () => setStreamState("lost"),
    });
    return end;
  }, [registry, runId, shard]);
  return { ...printed, streamState };
}
