-- reads: exceptions, clusters, clusters_before
-- An account's exceptions, latest first, with the user of the cluster; `cluster`, `user`, `origin`, `family` (its id),
-- `since` and `until` narrow them.
WITH identities AS (
    SELECT cluster, arg_max(scheduler_id, (boot, seq)) AS scheduler_id, arg_max("user", (boot, seq)) AS "user"
    FROM (FROM clusters UNION ALL BY NAME FROM clusters_before)
    GROUP BY cluster
)
SELECT e.* REPLACE (coalesce(e.origin, 'user') AS origin), i.scheduler_id, i."user"
FROM exceptions e
LEFT JOIN identities i USING (cluster)
WHERE ($cluster::VARCHAR IS NULL OR e.cluster = $cluster)
  AND ($user::VARCHAR IS NULL OR i."user" = $user)
  AND ($origin::VARCHAR IS NULL OR coalesce(e.origin, 'user') = $origin)
  AND ($family::VARCHAR IS NULL OR family_id(e.origin, e.type, family_text(e.text)) = $family)
  AND ($since::TIMESTAMPTZ IS NULL OR e.last_at >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR e.first_at <= $until)
ORDER BY e.last_at DESC, e.cluster, e.boot DESC, e.no DESC
LIMIT $limit OFFSET $offset
