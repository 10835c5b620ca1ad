import type { ReactNode } from "react";

import classes from "./Facts.module.css";

/** What is known of something, a word each; what is not known is left out. */
export function Facts({ facts }: { facts: [word: string, value: ReactNode][] }) {
  return (
    <dl className={classes.facts}>
      {facts
        .filter(
          ([, value]) => value !== null && value !== undefined && value !== false && value !== "",
        )
        .map(([word, value]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd className="wrap">{value}</dd>
          </div>
        ))}
    </dl>
  );
}
