import { useEffect, useState } from "react";

import { query } from "../../api/client";
import { listen } from "../../api/stream";
import { atRun } from "./api";

export interface Line {
  shardingItem: number;
  attemptId: string;
  at: string | null;
  stream: string;
  text: string;
}

export interface Printed {
  lines: Line[];
  /** How many earlier ones are no longer shown. */
  left: number;
}

/** How many lines a page shows. */
export const MOST = 5_000;

export const NOTHING: Printed = { lines: [], left: 0 };

/** What was printed, and more of it; of very much the end is kept. */
export function withLines(before: Printed, more: Line[]): Printed {
  const all = [...before.lines, ...more];
  const over = Math.max(0, all.length - MOST);
  return { lines: over > 0 ? all.slice(over) : all, left: before.left + over };
}

/** What colours a terminal is no use here. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: what colours a terminal begins with this character.
export const plain = (text: string) => text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "");

export type Listening = "connecting" | "live" | "lost" | "ended";

/** What a run prints, as it prints it; `shard` for that of one alone. */
export function useOutput(registry: string, runId: string, shard: string) {
  const [printed, setPrinted] = useState<Printed>(NOTHING);
  const [listening, setListening] = useState<Listening>("connecting");
  useEffect(() => {
    // After an interruption it is told from the beginning again.
    let isAnew = false;
    setPrinted(NOTHING);
    setListening("connecting");
    const end = listen(`${atRun(registry, runId)}/output/events${query({ shard })}`, {
      on: {
        lines: (data) => {
          const before = isAnew ? () => NOTHING : (known: Printed) => known;
          isAnew = false;
          setPrinted((known) => withLines(before(known), data as Line[]));
        },
        end: () => {
          end();
          setListening("ended");
        },
      },
      opened: () => {
        isAnew = true;
        setListening("live");
      },
      lost: () => setListening("lost"),
    });
    return end;
  }, [registry, runId, shard]);
  return { ...printed, listening };
}
