import type { ReactNode } from "react";

import classes from "./DescriptionList.module.css";

export function DescriptionList({ children }: { children: ReactNode }) {
  return <dl className={classes.facts}>{children}</dl>;
}

/** Renders nothing if there is no value. */
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
