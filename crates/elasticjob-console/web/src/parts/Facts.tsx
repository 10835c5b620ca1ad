import type { ReactNode } from "react";

import classes from "./Facts.module.css";

/** What is known of something, a word each. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className={classes.facts}>{children}</dl>;
}

/** What is not known is left out. */
export function Fact({ word, children }: { word: string; children: ReactNode }) {
  if (children === null || children === undefined || children === false || children === "") {
    return null;
  }
  return (
    <div>
      <dt>{word}</dt>
      <dd className="wrap">{children}</dd>
    </div>
  );
}
