import { Navigate } from "react-router";

import { useRegistries } from "../api/queries";
import { useText } from "../i18n";
import { Empty, Failure, Loading } from "../parts/states";
import { lastRegistry } from "./lastRegistry";

/** The way to the registry one was at, or the first. */
export function Home() {
  const t = useText();
  const registries = useRegistries();
  if (registries.isPending) return <Loading />;
  if (!registries.data)
    return <Failure error={registries.error} again={() => void registries.refetch()} />;
  const names = registries.data.map((each) => each.name);
  const last = lastRegistry.get();
  const name = last && names.includes(last) ? last : names[0];
  if (!name)
    return (
      <Empty icon="registry" title={t.registries.none}>
        {t.registries.noneAbout}
      </Empty>
    );
  return <Navigate to={`/r/${encodeURIComponent(name)}`} replace />;
}
