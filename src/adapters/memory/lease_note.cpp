#include "adapters/memory/lease_note.hpp"

#include <algorithm>
#include <utility>

#include "proxypool/base/text.hpp"

namespace proxypool::memory {

namespace {
constexpr std::string_view kNote = "leases";
}

// One line an instance: worker, instance, end in milliseconds. Ids hold no blanks.
Result<LeaseNote> LeaseNote::load(ports::DurableNotes* notes) {
  LeaseNote note(notes);
  if (!notes) return note;
  PP_TRY(const std::optional<std::string> text, notes->load(kNote));
  if (!text) return note;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.empty()) continue;
    const auto fields = split(line, ' ');
    const auto until = fields.size() == 3 ? parse_number<std::int64_t>(fields[2]) : std::nullopt;
    if (!until) {
      return Error{ErrorCode::Corrupt, Origin::Store,
                   "the note of leases is not readable; move leases.note away once no gateway of "
                   "an earlier run is left"};
    }
    const Key key{WorkerId(std::string(fields[0])), InstanceId(std::string(fields[1]))};
    note.missing_[key] = StoreTime{milliseconds{*until}};
  }
  note.covered_ = note.missing_;
  return note;
}

Status LeaseNote::save() const {
  if (!notes_) return ok();
  std::string text;
  for (const auto& [key, until] : covered_) {
    text += key.first.str() + " " + key.second.str() + " " +
            std::to_string(until.time_since_epoch().count()) + "\n";
  }
  return notes_->save(kNote, text);
}

Status LeaseNote::cover(const WorkerId& worker, const InstanceId& instance, StoreTime until,
                        milliseconds lease) {
  const Key key{worker, instance};
  const auto found = covered_.find(key);
  if (found != covered_.end() && found->second >= until) return ok();
  const auto before = found == covered_.end() ? std::optional<StoreTime>{} : found->second;
  covered_[key] = until + lease;
  const Status saved = save();
  if (saved) return ok();
  if (before) {
    covered_[key] = *before;
  } else {
    covered_.erase(key);
  }
  return saved;
}

void LeaseNote::forget_ended(StoreTime moment) {
  const auto ended = [&](const auto& entry) { return entry.second < moment; };
  std::erase_if(covered_, ended);
  std::erase_if(missing_, ended);
}

Status LeaseNote::forget(const WorkerId& worker, const InstanceId& instance) {
  missing_.erase({worker, instance});
  if (covered_.erase({worker, instance}) == 0) return ok();
  return save();
}

void LeaseNote::came_back(const WorkerId& worker, const InstanceId& instance) {
  missing_.erase({worker, instance});
}

std::optional<StoreTime> LeaseNote::missing_until() const {
  std::optional<StoreTime> last;
  for (const auto& [key, until] : missing_) last = std::max(last.value_or(until), until);
  return last;
}

}  // namespace proxypool::memory
