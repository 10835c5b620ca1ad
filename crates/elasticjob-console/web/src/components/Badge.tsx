import type { ReactNode } from "react";

import classes from "./Badge.module.css";

export type Tone = "ok" | "busy" | "warn" | "bad" | "off";

/** A status label. The text carries the meaning; the colour only supports it. */
export function Badge({
  tone,
  children,
  isAlive = false,
}: {
  tone: Tone;
  children: ReactNode;
  isAlive?: boolean;
}) {
  return (
    <span className={classes.badge} data-tone={tone}>
      <span className={classes.dot} data-alive={isAlive || undefined} aria-hidden="true" />
      {children}
    </span>
  );
}
