import { fetchJobs } from "../api/queries";
import { useRegistry } from "../app/registry";
import { useText } from "../i18n";
import { SuggestField } from "./SuggestField";

/** Filters by job name. It suggests existing jobs and accepts any name, because history may contain removed jobs. */
export function JobFilter({ value, onChange }: { value: string; onChange: (job: string) => void }) {
  const t = useText();
  const registry = useRegistry();
  return (
    <SuggestField
      isPageSearch
      label={t.runs.job}
      value={value}
      onChange={onChange}
      source={["jobs", registry]}
      suggest={async (search) => {
        const found = await fetchJobs(registry, { search, pageSize: 12 });
        return found.items.map((job) => job.jobName);
      }}
    />
  );
}
