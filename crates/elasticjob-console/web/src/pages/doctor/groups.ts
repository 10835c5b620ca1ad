import type { DoctorFinding } from "../../api/types";

/** Findings that say the same about several things. */
export interface FindingGroup extends Omit<DoctorFinding, "about"> {
  /** What the finding is about, such as jobs; empty if it is about the registry as a whole. */
  abouts: string[];
}

/** Groups findings that differ only in what they are about, in the order of their first one. */
export function groupFindings(findings: DoctorFinding[]): FindingGroup[] {
  const groups = new Map<string, FindingGroup>();
  for (const { about, ...finding } of findings) {
    const key = JSON.stringify([
      finding.check,
      finding.isProblem,
      finding.message,
      finding.hint ?? null,
    ]);
    const group = groups.get(key) ?? { ...finding, abouts: [] };
    if (about) group.abouts.push(about);
    groups.set(key, group);
  }
  return [...groups.values()];
}
