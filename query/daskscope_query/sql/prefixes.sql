-- reads: prefixes_daily
-- A team's task prefixes, greatest first by `sort`: time (of workers), bytes (of results) or count (of tasks); `user`
-- narrows them. `n_clusters` counts a cluster on each of its days.
WITH actions AS (
    SELECT prefix, e.key AS action, capped(sum(e.value)) AS us
    FROM (
        SELECT prefix, unnest(action_us) AS e
        FROM prefixes_daily_entries
        WHERE $user::VARCHAR IS NULL OR "user" = $user
    )
    GROUP BY ALL
),
spent AS (
    SELECT prefix, map_from_entries(list((action, us) ORDER BY action)) AS action_us, capped(sum(us)) AS us
    FROM actions
    GROUP BY prefix
),
made AS (
    SELECT
        prefix,
        capped(sum(n_clusters)) AS n_clusters,
        capped(sum(n_tasks)) AS n_tasks,
        capped(sum(nbytes)) AS nbytes
    FROM prefixes_daily
    WHERE $user::VARCHAR IS NULL OR "user" = $user
    GROUP BY prefix
)
SELECT made.*, coalesce(spent.action_us, MAP {}::MAP(VARCHAR, BIGINT)) AS action_us, coalesce(spent.us, 0) AS us
FROM made
LEFT JOIN spent USING (prefix)
ORDER BY CASE $sort WHEN 'bytes' THEN nbytes WHEN 'count' THEN n_tasks ELSE us END DESC, prefix
LIMIT $limit OFFSET $offset
