import type { ReactNode } from "react";

import classes from "./DescriptionList.module.css";

/** What is known of something, a word each. */
export function DescriptionList({ children }: { children: ReactNode }) {
  return <dl className={classes.facts}>{children}</dl>;
}

/** What is not known is left out. */
export function DescriptionItem({ term, children }: { term: string; children: ReactNode }) {
  if (children === null || children === undefined || children === false || children === "") {
    return null;
  }
  return (
    <div>
      <dt>{term}</dt>
      <dd className="wrap">{children}</dd>
    </div>
  );
}
