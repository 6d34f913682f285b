-- reads: groups
-- One cluster's task prefixes as `prefixes` has those of a team, but from its task groups: over all of its life, or
-- of one `computation` ('<boot>-<no>').
WITH mine AS (
    SELECT *
    FROM groups
    WHERE cluster = $cluster AND ($computation::VARCHAR IS NULL OR boot || '-' || computation = $computation)
),
actions AS (
    SELECT prefix, e.key AS action, capped(sum(e.value)) AS us
    FROM (SELECT prefix, unnest(map_entries(action_us)) AS e FROM mine)
    GROUP BY ALL
),
spent AS (
    SELECT prefix, map_from_entries(list((action, us) ORDER BY action) FILTER (us <> 0)) AS action_us, capped(sum(us)) AS us
    FROM actions
    GROUP BY prefix
),
made AS (
    SELECT prefix, 1::BIGINT AS n_clusters, capped(sum(n_tasks)) AS n_tasks, capped(sum(nbytes)) AS nbytes
    FROM mine
    GROUP BY prefix
)
SELECT made.*, coalesce(spent.action_us, MAP {}::MAP(VARCHAR, BIGINT)) AS action_us, coalesce(spent.us, 0) AS us
FROM made
LEFT JOIN spent USING (prefix)
ORDER BY CASE $sort WHEN 'bytes' THEN nbytes WHEN 'count' THEN n_tasks ELSE us END DESC, prefix
LIMIT $limit OFFSET $offset
